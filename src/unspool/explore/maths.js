// The mathematics of the page. One implementation of each rule runs in three spaces: signals on the graph, single frequencies λ, and
// polynomials of A (whose coefficients are the hops of the network).

const soft = (v, t) => Math.sign(v) * Math.max(Math.abs(v) - t, 0);

function random(seed) { // mulberry32: the same numbers in every browser
  let a = (seed * 2654435761 + 12345) >>> 0;
  const uniform = () => { a = (a + 0x6D2B79F5) >>> 0; let t = a; t = Math.imul(t ^ (t >>> 15), t | 1); t ^= t + Math.imul(t ^ (t >>> 7), t | 61); return ((t ^ (t >>> 14)) >>> 0) / 4294967296; };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

// A space knows X, how to multiply by L, and, where signals live in it, B and its transpose.
function signalSpace(graph, x) {
  const { edges, own, degree } = graph;
  const left = edges.map(([i, j, a]) => Math.sqrt(a * Math.sqrt(degree[j] / degree[i])));
  const right = edges.map(([i, j, a]) => Math.sqrt(a * Math.sqrt(degree[i] / degree[j])));
  const laplacian = h => {
    const out = h.map((v, i) => v - own[i] * v);
    edges.forEach(([i, j, a]) => { out[i] -= a * h[j]; out[j] -= a * h[i]; });
    return out;
  };
  const difference = h => edges.map(([i, j], e) => left[e] * h[i] - right[e] * h[j]);
  const spread = z => { const out = x.map(() => 0); edges.forEach(([i, j], e) => { out[i] += left[e] * z[e]; out[j] -= right[e] * z[e]; }); return out; };
  return { x, laplacian, difference, spread };
}
const frequencySpace = lambda => ({ x: [1], laplacian: h => [lambda * h[0]] });
const hopSpace = depth => ({ x: [1, ...Array(depth).fill(0)], laplacian: h => h.map((v, k) => v - (k ? h[k - 1] : 0)) });

const add = (a, b, s = 1) => a.map((v, i) => v + s * b[i]);
const scale = (a, s) => a.map(v => s * v);

// Which terms a problem has; the same conditions as the Python terms.
function terms(p) {
  const found = [];
  if (p.alpha > 0 && p.fidelity === "squares") found.push("Fidelity");
  if (p.beta > 0) found.push("Smoothness");
  if (p.ridge > 0) found.push("Ridge");
  if (p.alpha > 0 && p.fidelity === "rows") found.push("RowSparseFidelity");
  if (p.sparse > 0) found.push("Sparse");
  if (p.nonnegative) found.push("NonNegative");
  if (p.edges > 0) found.push("EdgeSparse");
  return found;
}
const SMOOTH = ["Fidelity", "Smoothness", "Ridge"], PROXIMABLE = ["RowSparseFidelity", "Sparse", "NonNegative"];
const weight = (p, name) => ({ Fidelity: p.alpha, RowSparseFidelity: p.alpha, Smoothness: p.beta, Ridge: p.ridge, Sparse: p.sparse, EdgeSparse: p.edges, NonNegative: 1 })[name];
const digits = v => String(+(+v).toPrecision(4));
const SIGNS = { Fidelity: "‖H − X‖²", RowSparseFidelity: "‖H − X‖₂,₁", Smoothness: "‖B H‖²", Ridge: "‖H‖²", Sparse: "‖H‖₁", EdgeSparse: "‖B H‖₂,₁", NonNegative: "ι[H ≥ 0]" };
const formula = p => terms(p).map(t => (weight(p, t) === 1 ? "" : digits(weight(p, t)) + " ") + SIGNS[t]).join("  +  ");

// One sentence where the rule cannot solve the problem, and the rule that can.
function refusal(p) {
  const have = terms(p), smooth = have.filter(t => SMOOTH.includes(t)), prox = have.filter(t => PROXIMABLE.includes(t)), edge = have.includes("EdgeSparse");
  if (!have.length) return { text: "Nothing is asked of H: give at least one term a weight." };
  if (prox.includes("RowSparseFidelity") && prox.length > 1) return { text: `The proximal operator of RowSparseFidelity + ${prox.find(t => t !== "RowSparseFidelity")} is not known: keep one of them, or use squares for the fidelity.` };
  if (edge && p.algorithm !== "PrimalDual") return { text: `${p.algorithm} does not handle ‖B H‖₂,₁, a penalty behind a linear operator.`, way: "PrimalDual" };
  if (prox.length && p.algorithm === "GradientDescent") return { text: `GradientDescent needs a gradient, but ${prox[0]} has none.`, way: "ProximalGradient" };
  if (prox.length && p.algorithm === "Chebyshev") return { text: `Chebyshev needs a quadratic objective, but ${prox[0]} is not quadratic.`, way: "ProximalGradient" };
  if (p.algorithm === "Chebyshev" && !(low(p) > 0)) return { text: "Chebyshev needs a strictly convex objective, and this one is flat at the lowest frequency.", way: "GradientDescent" };
  if (!smooth.length && p.automatic) return { text: "The smooth part is flat, so the step 1/L is not defined: choose a step." };
  return null;
}

const low = p => (p.fidelity === "squares" ? 2 * p.alpha : 0) + 2 * p.ridge; // curvature at λ = 0
const curvature = (p, lambda) => low(p) + 2 * p.beta * lambda;
const lipschitz = p => curvature(p, 2); // frequencies lie in [0, 2]
const stepOf = p => p.automatic ? 1 / lipschitz(p) : p.step;

function gradient(p, space, h) {
  let out = scale(h, 2 * p.ridge);
  if (p.fidelity === "squares" && p.alpha > 0) out = add(out, add(h, space.x, -1), 2 * p.alpha);
  return p.beta > 0 ? add(out, space.laplacian(h), 2 * p.beta) : out;
}

function prox(p, space, v, step) {
  if (p.fidelity === "rows" && p.alpha > 0) return v.map((w, i) => space.x[i] + soft(w - space.x[i], step * p.alpha));
  return v.map(w => { const u = p.nonnegative ? w - step * p.sparse : soft(w, step * p.sparse); return p.nonnegative ? Math.max(u, 0) : u; });
}

const RULES = {
  GradientDescent: (p, space, s, k, step) => ({ ...s, h: add(s.h, gradient(p, space, s.h), -step) }), // eq. (5)
  ProximalGradient: (p, space, s, k, step) => ({ ...s, h: prox(p, space, add(s.h, gradient(p, space, s.h), -step), step) }), // eq. (9)
  Accelerated: (p, space, s, k, step) => {
    const y = add(s.h, add(s.h, s.before, -1), (k - 1) / (k + 2));
    return { h: prox(p, space, add(y, gradient(p, space, y), -step), step), before: s.h };
  },
  Chebyshev: (p, space, s, k) => {
    const centre = (lipschitz(p) + low(p)) / 2, ratio = ((lipschitz(p) - low(p)) / 2 / centre) ** 2;
    const omega = k === 1 ? 1 : k === 2 ? 1 / (1 - ratio / 2) : 1 / (1 - ratio * s.omega / 4);
    const ahead = add(s.h, gradient(p, space, s.h), -1 / centre);
    return { h: add(s.before, add(ahead, s.before, -1), omega), before: s.h, omega };
  },
  PrimalDual: (p, space, s, k, step) => {
    const down = add(s.h, gradient(p, space, s.h), -step);
    if (!(p.edges > 0)) { const v = down; return { ...s, h: prox(p, space, v, step), v }; }
    let ahead = add(down, s.pull, -step);
    if (terms(p).some(t => PROXIMABLE.includes(t))) ahead = add(ahead, add(s.h, s.v, -1));
    const sigma = 1 / (step * 2), image = space.difference(ahead); // ‖B‖² is at most 2
    const z = s.z.map((v, e) => Math.max(-p.edges, Math.min(p.edges, v + sigma * image[e])));
    const pull = space.spread(z), v = add(down, pull, -step);
    return { ...s, h: prox(p, space, v, step), v, z, pull };
  },
};

function iterates(p, space) {
  const rule = RULES[p.algorithm], step = stepOf(p), zero = scale(space.x, 0);
  let state = { h: space.x, before: space.x, v: space.x, pull: zero, z: space.difference && p.edges > 0 ? space.difference(zero) : [], omega: 0 };
  const out = [space.x];
  for (let k = 1; k <= p.depth; k++) { state = rule(p, space, state, k, step); out.push(state.h); }
  return out;
}

function objective(p, space, h) {
  const squares = v => v.reduce((t, w) => t + w * w, 0), sizes = v => v.reduce((t, w) => t + Math.abs(w), 0);
  const away = add(h, space.x, -1);
  let total = p.ridge * squares(h) + p.sparse * sizes(h) + p.alpha * (p.fidelity === "squares" ? squares(away) : sizes(away));
  if (p.beta > 0 || p.edges > 0) { const d = space.difference(h); total += p.beta * squares(d) + p.edges * sizes(d); }
  return p.nonnegative && h.some(v => v < -1e-9) ? Infinity : total;
}

const linear = p => !terms(p).some(t => !SMOOTH.includes(t));
const respond = (p, lambda) => iterates(p, frequencySpace(lambda)).at(-1)[0];
const hops = p => iterates(p, hopSpace(p.depth)).at(-1);

// Whether K steps of this size settle down, by the curvatures that occur: the frequencies of the graph at hand.
function stability(p, frequencies) {
  const step = stepOf(p), worst = Math.max(...frequencies.map(l => curvature(p, l)));
  if (p.algorithm === "Chebyshev") return { stable: true, text: "It has no step to choose, and converges on every graph." };
  if (!(worst > 0)) return { stable: true, text: "The smooth part is flat: any step is stable." };
  const limit = (p.algorithm === "Accelerated" ? 1 : 2) / worst;
  const what = p.algorithm === "Accelerated" ? "with momentum, steps of up to 1/L" : "steps below 2/L";
  const stable = p.algorithm === "Accelerated" ? step <= limit * (1 + 1e-9) : step < limit * (1 - 1e-12);
  const size = `η = ${digits(step)}, and L = ${digits(worst)} on this graph: ${what} = ${digits(limit)} converge.`;
  return { stable, text: stable ? `The step is stable: ${size}` : `The step is too long: ${size}` };
}

// The network with a name that these layers are.
function nameOf(p) {
  const have = terms(p).join(" "), step = stepOf(p), near = (a, b) => Math.abs(a - b) < 1e-6 * Math.max(1, Math.abs(b)), K = p.depth;
  const keep = 1 - step * (low(p) + 2 * p.beta), teleport = 2 * step * p.alpha;
  if (!p.beta && !p.edges) return { model: "MLP", text: "No term looks at the graph: around this, a network is a perceptron." };
  if (linear(p)) {
    if (p.algorithm === "GradientDescent" || p.algorithm === "ProximalGradient" || p.algorithm === "PrimalDual") {
      if (have === "Smoothness" && near(keep, 0)) return { model: "SGC", text: `This is SGC with K = ${K}: every layer is H ← A H.` };
      if (have === "Fidelity Smoothness" && near(keep, 0)) return { model: "APPNP", text: `This is APPNP with γ = ${digits(teleport)}, K = ${K}: every layer is H ← ${digits(1 - teleport)} A H + ${digits(teleport)} X. For K → ∞ it is PPNP.` };
    }
    const g = hops(p), shown = g.slice(0, 6).map(v => String(+v.toFixed(3))).join(", ") + (g.length > 6 ? ", …" : "");
    return { model: "GPRGNN", text: `This is GPRGNN with K = ${K} and the hop coefficients γ = (${shown}), before it learns them: Σ γₖ Aᵏ X.` };
  }
  const ratio = p.alpha / (p.alpha + p.beta);
  if (have === "Smoothness RowSparseFidelity" && p.algorithm === "ProximalGradient" && near(step, 1 / (2 * p.beta))) return { model: "AirGNN", text: `This is AirGNN with λ = ${digits(ratio)}, K = ${K}: A H, then rows shrunk towards X.` };
  if (have === "Fidelity Smoothness EdgeSparse" && p.algorithm === "PrimalDual" && near(keep, 0)) return { model: "ElasticGNN", text: `This is ElasticGNN with λ₁ = ${digits(p.edges / (2 * p.alpha))}, λ₂ = ${digits(p.beta / p.alpha)}, K = ${K}.` };
  if (have === "Smoothness NonNegative" && p.algorithm === "ProximalGradient" && near(keep, 0)) return { model: "GCN", text: `These are layers of GCN with W = I: H ← ReLU(A H), K = ${K}.` };
  if (have === "Fidelity Smoothness NonNegative" && p.algorithm === "ProximalGradient" && near(keep, 0)) return { model: "GCNII", text: `These are layers of GCNII with T = I and a = ${digits(teleport)}: H ← ReLU(${digits(1 - teleport)} A H + ${digits(teleport)} X), K = ${K}.` };
  return { model: null, text: "No network of the literature that unspool names has these layers: they are yours." };
}

// Clean signals by the place of a node in the picture, and what noise and outliers make of them.
const CLEAN = {
  smooth: ["smooth", ([u, v]) => Math.sin(2 * Math.PI * u) * Math.cos(Math.PI * v)],
  jumps: ["regions with jumps", ([u, v]) => (u > 0.5 ? 1 : -1) + (v > 0.5 ? 0.5 : -0.5)],
  bump: ["one bump, zero elsewhere", ([u, v]) => { const d = (u - 0.35) ** 2 + (v - 0.6) ** 2; return d < 0.05 ? 2 * (1 - d / 0.05) : 0; }],
};
function signals(p, graph) {
  const clean = p.signal === "own" ? graph.signal.slice() : graph.positions.map(CLEAN[p.signal][1]);
  const dice = random(p.seed);
  const x = clean.map(v => v + p.noise * dice.normal());
  const order = clean.map((_, i) => [dice.uniform(), i]).sort((a, b) => a[0] - b[0]).map(e => e[1]);
  order.slice(0, Math.round(p.outliers / 100 * x.length)).forEach(i => { x[i] = p.length * (dice.uniform() < 0.5 ? -1 : 1); });
  return { clean, x: x.map(v => +v.toFixed(6)) };
}

function python(p, graph, x) {
  const args = { Fidelity: digits(p.alpha), RowSparseFidelity: digits(p.alpha), Smoothness: digits(p.beta), Ridge: digits(p.ridge), Sparse: digits(p.sparse), EdgeSparse: digits(p.edges), NonNegative: "" };
  const sum = terms(p).map(t => `us.${t}(${args[t]})`).join(" + ");
  const rule = `us.${p.algorithm}(${p.algorithm === "Chebyshev" || p.automatic ? "" : `step=${digits(p.step)}`})`;
  return `import torch\nimport unspool as us\n\n${graph.code}\nx = torch.tensor(${x}).unsqueeze(1)\nobjective = ${sum}\nnet = us.unroll(objective, ${rule}, depth=${p.depth})\nprint(objective)\nprint(net.trace(x, graph))`;
}

function solve(p, graph) {
  const { clean, x } = signals(p, graph), refused = refusal(p), space = signalSpace(graph, x);
  const shared = { formula: formula(p), clean, x, refused, code: list => python(p, graph, list) };
  if (refused) return { ...shared, error: [] };
  const layers = iterates(p, space), size = Math.sqrt(clean.reduce((t, v) => t + v * v, 0)) || 1;
  const known = p.signal !== "own" || p.noise > 0 || p.outliers > 0; // of a signal as it was measured nobody knows the clean one
  const error = !known ? null : layers.map(h => Math.sqrt(h.reduce((t, v, i) => t + (v - clean[i]) ** 2, 0)) / size);
  return { ...shared, layers, error, objective: layers.map(h => objective(p, space, h)), step: stepOf(p), name: nameOf(p), stability: stability(p, graph.frequencies), linear: linear(p) };
}
