// Puts the playground where its still picture is. Without scripts, and without WebAssembly, the picture stays.
if (typeof WebAssembly === "object") {
  for (const figure of document.querySelectorAll("figure.scene")) {
    const frame = document.createElement("iframe");
    frame.loading = "lazy";
    frame.src = figure.dataset.scene;
    frame.title = "The playground, with the scene of this page";
    figure.querySelector("img").parentElement.replaceWith(frame);
  }
}
