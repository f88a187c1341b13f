// What a person sees: controls, pictures, sentences. State lives in the address (#...), so a page can be shared.

const GRAPHS = JSON.parse(document.getElementById("graphs").textContent);
const START = { fidelity: "squares", alpha: 0.2, beta: 0.8, edges: 0, ridge: 0, sparse: 0, nonnegative: false, algorithm: "GradientDescent", automatic: false, step: 0.5, depth: 10,
  graph: GRAPHS[0].name, signal: GRAPHS[0].signal ? "own" : "smooth", noise: GRAPHS[0].signal ? 0 : 0.4, outliers: 0, length: 5, seed: 0 };
const PRESETS = {
  APPNP: {}, SGC: { alpha: 0, beta: 1 }, "GPRGNN by momentum": { algorithm: "Accelerated", automatic: true },
  AirGNN: { fidelity: "rows", alpha: 0.5, beta: 0.5, algorithm: "ProximalGradient", step: 1, outliers: 10, depth: 30 },
  ElasticGNN: { alpha: 0.5, beta: 0.5, edges: 0.3, algorithm: "PrimalDual", signal: "jumps", depth: 40 },
  "GCN, W = I": { alpha: 0, beta: 1, nonnegative: true, algorithm: "ProximalGradient", signal: "bump" },
  "a step too long": { alpha: 0.2, beta: 0.8, step: 1.4 },
};
const $ = id => document.getElementById(id);
const ranges = {};
let state = { ...START }, result = null, layer = 0, timer = null;

const graphNow = () => GRAPHS.find(g => g.name === state.graph) || GRAPHS[0];

function makeControls() {
  document.querySelectorAll("[data-range]").forEach(box => {
    const { range: name, label, max, min = "0", grain = "0.01" } = box.dataset;
    box.className = "row";
    box.innerHTML = `<label for="${name}">${label}</label><input type="range" id="${name}-slide" min="${min}" max="${max}" step="${grain}" aria-label="${label}"><input type="number" id="${name}" min="${min}" max="${max}" step="${grain}">`;
    ranges[name] = { slide: box.children[1], number: box.children[2], min: +min, max: +max, whole: grain === "1" };
    const take = text => { const v = Number(text); if (text !== "" && Number.isFinite(v)) change({ [name]: v }); };
    ranges[name].slide.addEventListener("input", e => take(e.target.value));
    ranges[name].number.addEventListener("change", e => { take(e.target.value); e.target.value = state[name]; });
  });
  $("graph").innerHTML = GRAPHS.map(g => `<option value="${g.name}"></option>`).join("");
  [...$("graph").options].forEach((o, i) => { o.textContent = GRAPHS[i].title; });
  ["fidelity", "algorithm", "graph", "signal"].forEach(id => $(id).addEventListener("change", e => change({ [id]: e.target.value })));
  ["nonnegative", "automatic"].forEach(id => $(id).addEventListener("change", e => change({ [id]: e.target.checked })));
  for (const [name, what] of Object.entries(PRESETS)) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
    button.addEventListener("click", () => change({ ...START, graph: state.graph, ...(graphNow().signal ? { signal: "own", noise: 0 } : {}), ...what, ...(graphNow().signal && what.signal ? { signal: state.signal } : {}) }));
    $("presets").append(button);
  }
  $("layer").addEventListener("input", e => { layer = +e.target.value; drawLayer(); });
  $("play").addEventListener("click", () => timer ? stop() : play());
  $("copy").addEventListener("click", () => copy(result.code(`[${result.x.join(", ")}]`), "Copied."));
  $("share").addEventListener("click", () => copy(location.href, "Address copied."));
}

async function copy(text, said) {
  try { await navigator.clipboard.writeText(text); $("copied").textContent = said; } catch { $("copied").textContent = "The browser does not allow copying here: select the text."; }
}

function legal(given) { // whatever an address or a person says, within the ranges of the controls
  const out = { ...START };
  for (const [name, { min, max, whole }] of Object.entries(ranges)) {
    const v = Number(given[name]);
    if (given[name] !== undefined && Number.isFinite(v)) out[name] = Math.min(max, Math.max(min, whole ? Math.round(v) : +v.toPrecision(4)));
  }
  for (const name of ["nonnegative", "automatic"]) if (given[name] !== undefined) out[name] = given[name] === true || given[name] === "true";
  for (const id of ["fidelity", "algorithm"]) if ([...$(id).options].some(o => o.value === given[id])) out[id] = given[id];
  const graph = GRAPHS.find(g => g.name === given.graph) || GRAPHS[0];
  out.graph = graph.name;
  const wanted = given.signal === undefined ? START.signal : given.signal;
  out.signal = wanted === "own" && graph.signal ? "own" : Object.hasOwn(CLEAN, wanted) ? wanted : graph.signal ? "own" : "smooth";
  return out;
}

function change(what) {
  stop();
  state = legal({ ...state, ...what });
  const different = Object.entries(state).filter(([k, v]) => v !== START[k]);
  history.replaceState(null, "", "#" + new URLSearchParams(different));
  render();
}

function play() {
  if (!result.layers) return;
  layer = layer >= result.layers.length - 1 ? 0 : layer;
  timer = setInterval(() => { if (layer >= result.layers.length - 1) return stop(); layer += 1; $("layer").value = layer; drawLayer(); }, Math.max(60, 2500 / state.depth));
  $("play").textContent = "Pause"; $("play").setAttribute("aria-pressed", "true");
}
function stop() { clearInterval(timer); timer = null; $("play").textContent = "Play"; $("play").setAttribute("aria-pressed", "false"); }

function render() {
  for (const [name, { slide, number }] of Object.entries(ranges)) { slide.value = state[name]; if (document.activeElement !== number) number.value = state[name]; }
  ["fidelity", "algorithm", "graph"].forEach(id => { $(id).value = state[id]; });
  ["nonnegative", "automatic"].forEach(id => { $(id).checked = state[id]; });
  const known = [...(graphNow().signal ? [["own", "your own"]] : []), ...Object.entries(CLEAN).map(([k, v]) => [k, v[0]])];
  $("signal").innerHTML = known.map(([k, v]) => `<option value="${k}">${v}</option>`).join(""); $("signal").value = state.signal;
  const chosen = state.automatic || state.algorithm === "Chebyshev";
  ranges.step.slide.disabled = ranges.step.number.disabled = chosen; $("automatic").disabled = state.algorithm === "Chebyshev";
  result = solve(state, graphNow());
  $("formula").textContent = result.formula || "–";
  $("code").textContent = result.code(`[${result.x.slice(0, 4).join(", ")}, …]`);
  verdicts();
  layer = result.layers ? result.layers.length - 1 : 0;
  Object.assign($("layer"), { max: layer, value: layer, disabled: !result.layers });
  $("play").disabled = !result.layers;
  drawLayer(); drawCurves();
}

function verdicts() {
  const box = $("verdicts"), line = (text, kind) => { const p = document.createElement("p"); p.className = `verdict ${kind}`; p.textContent = text; box.append(p); return p; };
  box.replaceChildren();
  if (result.refused) {
    const p = line(result.refused.text + " ", "bad");
    if (result.refused.way) { const b = Object.assign(document.createElement("button"), { type: "button", textContent: `Use ${result.refused.way}` }); b.addEventListener("click", () => change({ algorithm: result.refused.way })); p.append(b); }
    return;
  }
  line(result.name.text, "").style.fontWeight = "650";
  line(result.stability.text, result.stability.stable ? "good" : "bad");
  if (result.error === null) { line("Your signal is taken as it is, so there is nothing to measure an error against: add noise to see how much of it goes.", ""); return; }
  const e = result.error, best = e.indexOf(Math.min(...e.filter(Number.isFinite)));
  line(`Relative error: ${digits(e[0])} before, ${Number.isFinite(e.at(-1)) ? digits(e.at(-1)) : "not finite"} after ${state.depth} layers; lowest ${digits(e[best])} after ${best}.`, "");
}

const system = matchMedia("(prefers-color-scheme: dark)"), chosen = document.documentElement.dataset;
const isDark = () => chosen.theme ? chosen.theme === "dark" : system.matches;
function colour(v, most) {
  const dark = isDark(), t = Math.max(-1, Math.min(1, v / most)), zero = dark ? [58, 64, 74] : [238, 238, 234], end = t < 0 ? (dark ? [92, 150, 240] : [33, 102, 172]) : (dark ? [244, 120, 100] : [190, 45, 40]);
  return `rgb(${zero.map((c, i) => Math.round(c + (end[i] - c) * Math.abs(t))).join(",")})`;
}

function map(values, title, most) {
  const g = graphNow(), at = g.positions.map(([u, v]) => [8 + 184 * u, 8 + 184 * (1 - v)]), r = Math.max(1.6, Math.min(6, 46 / Math.sqrt(g.positions.length)));
  const lines = g.edges.map(([i, j]) => `<line class="edge" x1="${at[i][0].toFixed(1)}" y1="${at[i][1].toFixed(1)}" x2="${at[j][0].toFixed(1)}" y2="${at[j][1].toFixed(1)}"/>`).join("");
  const dots = values.map((v, i) => `<circle cx="${at[i][0].toFixed(1)}" cy="${at[i][1].toFixed(1)}" r="${r}" fill="${Number.isFinite(v) ? colour(v, most) : "none"}" stroke="var(--soft)" stroke-width=".3"/>`).join("");
  return `<figure><svg viewBox="0 0 200 200" role="img" aria-label="${title} on the graph: values from ${digits(Math.min(...values))} to ${digits(Math.max(...values))}">${lines}${dots}</svg><figcaption>${title}</figcaption></figure>`;
}

function drawLayer() {
  const now = result.layers ? result.layers[layer] : result.x, most = Math.max(1e-9, ...result.clean.map(Math.abs)) * 1.15;
  $("maps").innerHTML = (result.error === null ? "" : map(result.clean, "clean signal", most)) + map(result.x, "X, what is given", most) + map(now, result.layers ? `H after ${layer} of ${state.depth} layers` : "no layers", most);
  $("layer-out").textContent = result.layers ? `layer ${layer}` : "–";
  const index = now.map((_, i) => i), order = graphNow().name === "ring" ? index : [...index].sort((a, b) => result.clean[a] - result.clean[b]), sorted = v => order.map(i => v[i]), bound = 3 * Math.max(...result.clean.map(Math.abs), 0.1);
  chart("values", [{ x: index, y: sorted(result.x), dots: true, colour: "--soft", name: "X" }, { x: index, y: sorted(now), colour: "--one", name: "H" }, ...(result.error === null ? [] : [{ x: index, y: sorted(result.clean), colour: "--two", name: "clean" }])], graphNow().name === "ring" ? "node" : result.error === null ? "nodes, in the order of X" : "nodes, in the order of the clean signal", { low: -bound, high: bound });
}

function drawCurves() {
  const frequencies = graphNow().frequencies, grid = Array.from({ length: 201 }, (_, i) => i / 100);
  if (!result.layers || !result.linear) {
    $("response").innerHTML = `<p>${result.layers ? "The layers are not linear, so there is no response: what happens to a frequency depends on the signal." : "–"}</p>`;
  } else chart("response", [{ x: grid, y: grid.map(l => respond(state, l)), colour: "--one", name: "response h(λ)" }], "frequency λ", { rug: frequencies, low: -2, high: 3, within: true });
  if (!result.layers) { $("objective").innerHTML = $("error").innerHTML = "<p>–</p>"; return; }
  const steps = result.layers.map((_, k) => k);
  chart("objective", [{ x: steps, y: result.objective, colour: "--one", name: "objective" }], "layer", {});
  if (result.error === null) $("error").innerHTML = "<p>There is no clean signal to compare with.</p>";
  else chart("error", [{ x: steps, y: result.error, colour: "--three", name: "‖H − clean‖ / ‖clean‖" }], "layer", { from: 0 });
}

const short = v => Math.abs(v) >= 1e5 ? v.toExponential(0).replace("e+", "e") : digits(v);

function ticks(low, high, count = 4) {
  const raw = (high - low) / count, size = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(f => f * size).find(s => s >= raw), out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) out.push(Math.abs(v) < 1e-12 ? 0 : v);
  return out;
}

function chart(id, series, xname, { rug = [], low = -1e6, high = 1e6, from = null }) {
  const W = 380, H = 210, L = 46, R = 8, T = 8, B = 30;
  const seen = series.flatMap(s => s.y).filter(v => Number.isFinite(v)).map(v => Math.min(high, Math.max(low, v)));
  if (!seen.length) { $(id).innerHTML = "<p>No finite number to draw.</p>"; return; }
  let a = Math.min(...seen, ...(from === null ? [] : [from])), b = Math.max(...seen);
  if (b - a < 1e-12) { a -= 0.5; b += 0.5; }
  const pad = (b - a) * 0.05; b += pad; if (from === null) a -= pad;
  const xs = series[0].x, x0 = xs[0], x1 = xs.at(-1) === x0 ? x0 + 1 : xs.at(-1);
  const X = v => L + (v - x0) / (x1 - x0) * (W - L - R), Y = v => T + (b - Math.min(high, Math.max(low, v))) / (b - a) * (H - T - B);
  let out = ticks(a, b).map(v => `<line class="axis" x1="${L}" x2="${W - R}" y1="${Y(v).toFixed(1)}" y2="${Y(v).toFixed(1)}"/><text x="${L - 5}" y="${(Y(v) + 4).toFixed(1)}" text-anchor="end">${short(v)}</text>`).join("");
  out += ticks(x0, x1).filter(v => v >= x0 && v <= x1).map(v => `<text x="${X(v).toFixed(1)}" y="${H - 16}" text-anchor="middle">${digits(v)}</text>`).join("") + `<text x="${(L + W - R) / 2}" y="${H - 3}" text-anchor="middle">${xname}</text>`;
  out += rug.map(v => `<line x1="${X(v).toFixed(1)}" x2="${X(v).toFixed(1)}" y1="${H - B}" y2="${H - B - 7}" stroke="var(--soft)" stroke-width=".6"/>`).join("");
  for (const s of series) {
    if (s.dots) { out += s.y.map((v, i) => Number.isFinite(v) ? `<circle cx="${X(s.x[i]).toFixed(1)}" cy="${Y(v).toFixed(1)}" r="1.6" fill="var(${s.colour})"/>` : "").join(""); continue; }
    let path = "", pen = "M";
    s.y.forEach((v, i) => { if (!Number.isFinite(v)) { pen = "M"; return; } path += `${pen}${X(s.x[i]).toFixed(1)} ${Y(v).toFixed(1)}`; pen = "L"; });
    out += `<path d="${path}" fill="none" stroke="var(${s.colour})" stroke-width="1.8"/>`;
  }
  const last = series.at(-1), end = last.y.filter(Number.isFinite);
  const told = `${last.name} over ${xname}: begins at ${digits(end[0])}, ends at ${digits(end.at(-1))}`;
  const keys = series.map(s => `<li><i style="background:var(${s.colour})"></i>${s.name}</li>`).join("") + (rug.length ? "<li><i style='background:var(--soft)'></i>frequencies of this graph</li>" : "");
  $(id).innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${told}">${out}</svg><ul class="key">${keys}</ul>`;
}

makeControls();
system.addEventListener("change", render);
addEventListener("message", e => { // a page that shows this one in a frame hands its choice of colours on
  if (!["light", "dark", "auto"].includes(e.data?.theme)) return;
  if (e.data.theme === "auto") delete chosen.theme; else chosen.theme = e.data.theme;
  render();
});
addEventListener("hashchange", () => { state = legal(Object.fromEntries(new URLSearchParams(location.hash.slice(1)))); render(); });
state = legal(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
render();
