// Without this everything can be read; with it code can be copied by a button, and a phone shows the text before the menus.
const wide = matchMedia("(min-width: 50.01rem)");
const pages = document.querySelector("details.pages");
const outline = document.querySelector(".outline details");
const show = () => {
  pages.open = wide.matches;
  if (outline) outline.open = wide.matches;
};
show();
wide.addEventListener("change", show);

for (const pre of document.querySelectorAll("pre")) {
  const block = document.createElement("div");
  block.className = "block";
  pre.replaceWith(block);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const typed = [...pre.querySelectorAll("b")].map((line) => line.textContent);
    const text = pre.classList.contains("session") ? typed.join("\n") : pre.textContent;
    try {
      await navigator.clipboard.writeText(text.replace(/\n$/, ""));
      button.textContent = "Copied";
    } catch {
      const range = document.createRange(); // a browser that does not allow it: select, so that keys copy
      range.selectNodeContents(pre);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(pre, button);
}
