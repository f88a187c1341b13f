// The explorer on the first page follows the light or dark that a reader chooses for the site.
addEventListener("DOMContentLoaded", () => {
  const frame = document.querySelector("iframe.explorer");
  if (!frame) return;
  const tell = () => frame.contentWindow.postMessage({ theme: document.body.dataset.theme || "auto" }, "*");
  frame.addEventListener("load", tell);
  new MutationObserver(tell).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
});
