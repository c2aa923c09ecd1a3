// A figure is drawn when the reader comes near it, or for paper. On a phone, a tap on a figure, or the button below it,
// shows the figure enlarged. Escape, "Close" and a tap close it.
(() => {
  const phone = matchMedia("(max-width: 40rem)");
  const dialog = document.createElement("dialog");
  const close = document.createElement("button");
  const box = document.createElement("div");
  dialog.className = "enlarged";
  Object.assign(close, { type: "button", textContent: "Close" });
  Object.assign(box, { tabIndex: 0, role: "group", ariaLabel: "Scrolls in all directions" });
  dialog.append(close, box);
  dialog.addEventListener("click", () => dialog.close());

  // Until then it is the text of an element <noscript> (book/_tools/svg_minify.py), and the style sheet reserves its room.
  function draw(picture) {
    const waiting = picture.querySelector("noscript");
    if (waiting) picture.innerHTML = waiting.textContent;
  }

  const near = new IntersectionObserver((seen) => {
    seen.filter((one) => one.isIntersecting).forEach(({ target }) => {
      near.unobserve(target);
      draw(target);
    });
  }, { rootMargin: "100%" });

  function enlarge(picture, button, number) {
    button.focus(); // so that the focus returns there, after a tap on the picture as well
    draw(picture);
    const copy = picture.cloneNode(true);
    copy.removeAttribute("data-turns");
    dialog.ariaLabel = `${number}, enlarged`;
    box.replaceChildren(copy);
    if (!dialog.isConnected) document.body.append(dialog);
    dialog.showModal();
    box.scrollTo(0, 0);
  }

  function addButton(picture) {
    const number = picture.closest("figure")?.querySelector(".caption-number")?.textContent.trim() ?? "Figure";
    const button = document.createElement("button");
    Object.assign(button, {
      type: "button",
      className: "enlarge",
      textContent: "Enlarge",
      ariaLabel: `Enlarge ${number}`,
      onclick: () => enlarge(picture, button, number),
    });
    picture.after(button);
    picture.addEventListener("click", () => phone.matches && enlarge(picture, button, number));
  }

  document.addEventListener("DOMContentLoaded", () => {
    const pictures = document.querySelectorAll(".bd-article .picture");
    pictures.forEach(addButton);
    pictures.forEach((one) => near.observe(one));
    addEventListener("beforeprint", () => pictures.forEach(draw));
  });
})();
