// On a phone, a tap on a figure, or the button below it, shows the figure enlarged. Escape, "Close" and a tap close it.
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

  function enlarge(picture, button, number) {
    button.focus(); // so that the focus returns there, after a tap on the picture as well
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
    document.querySelectorAll(".bd-article .picture").forEach(addButton);
  });
})();
