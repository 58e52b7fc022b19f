// Puts the playground where its still picture is. Without scripts, and without WebAssembly, the picture stays.

// What is beside the run is for the page of its own: here there is the switch of a lesson.
const STYLE = `
  header, footer, #controls > :not(#switch-row):not(#wrong) { display: none }
  #controls:has(> #switch-row[hidden]) { display: none }
  body { padding: 0.5rem }`;

function embed(figure) {
  const frame = document.createElement("iframe");
  frame.loading = "lazy";
  frame.src = figure.dataset.scene;
  frame.title = "The playground, with the scene of this page";
  frame.addEventListener("load", () => {
    const page = frame.contentDocument;
    const style = page.createElement("style");
    style.textContent = STYLE;
    page.head.append(style);
    // As high as what is in it, whatever is shown or hidden there.
    const fit = () => {
      frame.style.height = `${Math.ceil(page.body.getBoundingClientRect().bottom) + 16}px`;
    };
    fit();
    new ResizeObserver(() => requestAnimationFrame(fit)).observe(page.body);
  });
  figure.querySelector("img").parentElement.replaceWith(frame);
}

if (typeof WebAssembly === "object" && location.protocol !== "file:") {
  document.querySelectorAll("figure.scene").forEach(embed);
}
