const el = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  return node;
};

const WIDE = 760; // px from which the passage stands beside the answer

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const body = root.querySelector(".body");
  const side = root.querySelector(".side");
  const wide = () => root.clientWidth >= WIDE;
  if (root.dataset.answer !== String(data.id)) {
    root.dataset.answer = data.id;
    root.dataset.open = "";
    root.dataset.chosen = "";
  }

  const panel = el("section", "panel");
  panel.setAttribute("aria-live", "polite");

  const marks = () => root.querySelectorAll("button.cite");

  function draw(number) {
    const one = data.cited.find((cited) => cited.number === number);
    panel.replaceChildren();
    if (!one) return;
    panel.setAttribute("aria-label", `What citation ${number} cites`);
    const head = el("div", "head");
    const title = el("div", "title");
    title.append(el("span", "number", number), el("bdi", "", one.title));
    const close = el("button", "close", "×");
    close.type = "button";
    close.title = "Close";
    close.addEventListener("click", () => choose(0));
    head.append(title, close);
    panel.append(head, el("div", "where", one.where));
    if (one.note) panel.append(el("div", "note", one.note));
    const text = el("div", "text");
    text.dir = "auto";
    text.tabIndex = 0;
    const mark = el("mark", "", one.text);
    text.append(one.before, mark, one.after);
    panel.append(text);
    if (one.href) {
      const link = el("a", "link", "Open in document ↗");
      link.href = one.href;
      link.target = "_blank";
      link.rel = "noopener";
      panel.append(link);
    }
  }

  function show() {
    const number = Number(root.dataset.open || 0);
    root.classList.toggle("open", number > 0);
    root.classList.toggle("wide", wide());
    for (const button of marks()) {
      const on = Number(button.dataset.number) === number;
      button.classList.toggle("on", on);
      button.setAttribute("aria-expanded", String(on));
    }
    for (const part of body.querySelectorAll(".claim")) {
      part.classList.toggle("on", part.dataset.cited.split(" ").includes(String(number)));
    }
    if (!number) {
      panel.remove();
      return;
    }
    if (panel.dataset.number !== String(number)) {
      draw(number);
      panel.dataset.number = number;
    }
    if (wide()) {
      if (panel.parentElement !== side) side.append(panel);
    } else {
      const clicked = body.querySelectorAll(`button.cite[data-number="${number}"]`);
      const at = Math.min(Number(root.dataset.nth || 0), clicked.length - 1);
      const line = at >= 0 ? clicked[at].closest(".line") : body.lastElementChild;
      if (line && line.nextSibling !== panel) line.after(panel);
    }
    const text = panel.querySelector(".text");
    const mark = panel.querySelector("mark");
    if (text && mark && panel.dataset.shown !== panel.dataset.number) {
      // Only this box scrolls: the answer stays where it is.
      text.scrollTop = mark.offsetTop - text.offsetTop - text.clientHeight / 3;
      panel.dataset.shown = panel.dataset.number;
    }
  }

  function choose(number, nth) {
    root.dataset.open = number || "";
    root.dataset.nth = nth || 0;
    root.dataset.chosen = "yes";
    show();
  }

  const all = document.createDocumentFragment();
  const count = {};
  for (const line of data.lines) {
    const row = el("div", `line ${line.kind}`);
    row.dir = "auto";
    if (line.bullet) row.append(el("span", "bullet", line.bullet));
    const said = el("span", "said");
    for (const part of line.parts) {
      const text = el("span", part.cited.length ? "claim" : "", part.text);
      if (part.cited.length) text.dataset.cited = part.cited.join(" ");
      said.append(text);
      for (const number of part.marks) {
        const button = el("button", "cite", number);
        const nth = (count[number] = (count[number] ?? -1) + 1);
        const title = data.cited.find((cited) => cited.number === number)?.title ?? "";
        button.type = "button";
        button.dataset.number = number;
        button.title = title;
        button.setAttribute("aria-label", `Citation ${number}: ${title}`);
        button.addEventListener("click", () => {
          const same = root.dataset.open === String(number) && Number(root.dataset.nth || 0) === nth;
          choose(same ? 0 : number, nth);
        });
        said.append(button);
      }
    }
    row.append(said);
    all.append(row);
  }
  if (data.busy) all.append(el("div", "line busy", data.lines.length ? "▍" : data.waiting));
  body.replaceChildren(all);
  side.replaceChildren();
  // The first passage is opened where there is room for it, unless the person has chosen.
  if (!root.dataset.chosen && data.cited.length && wide()) root.dataset.open = 1;
  show();

  const watcher = new ResizeObserver(() => show());
  watcher.observe(root);
  return () => watcher.disconnect();
}
