const el = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  return node;
};

const count = new Intl.NumberFormat("en");
const span = (one) => `${count.format(one.start)}–${count.format(one.end)}`;

// Places in the document count characters; JavaScript's strings count some of them twice.
const length = (text) => [...text].length;

const left = new WeakMap(); // how to stop listening, by the component's root

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".rs-judged-text");
  left.get(root)?.();
  const before = root.querySelector(".rs-jt-text");
  const scrolled = before && root.dataset.text === data.text ? before.scrollTop : 0;
  root.dataset.text = data.text;

  const characters = [...data.text];
  const within = data.judged
    .map((one) => ({ ...one, from: Math.max(one.start - data.start, 0), to: Math.min(one.end - data.start, characters.length) }))
    .filter((one) => one.from < one.to);

  const box = el("div", "rs-jt-text");
  box.tabIndex = 0;
  box.dir = "auto";
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Text of the chunk");
  const edges = [...new Set([0, characters.length, ...within.flatMap((one) => [one.from, one.to])])].sort((a, b) => a - b);
  let first = null;
  for (let at = 0; at + 1 < edges.length; at += 1) {
    const [from, to] = [edges[at], edges[at + 1]];
    const golden = within.some((one) => one.golden && one.from <= from && to <= one.to);
    const part = el(golden ? "mark" : "span", "", characters.slice(from, to).join(""));
    if (golden) part.title = "Golden: judged to answer the query";
    if (golden && !first) first = part;
    box.append(part);
  }

  const bar = el("div", "rs-jt-bar");
  const answer = el("button", "rs-jt-answer", "This answers it");
  answer.type = "button";
  const hint = el("span", "rs-jt-hint");
  bar.append(answer, hint);

  let chosen = null;
  const tell = () => {
    answer.disabled = !chosen;
    hint.textContent = chosen
      ? `characters ${span(chosen)}`
      : "Select the words that answer the query.";
  };
  const read = () => {
    const selection = document.getSelection();
    if (!selection || !selection.rangeCount || !root.isConnected) return;
    const range = selection.getRangeAt(0);
    if (!box.contains(range.startContainer) && !box.contains(range.endContainer)) return; // elsewhere: keep what is chosen
    if (range.collapsed) chosen = null;
    else {
      // A selection that runs out of the box counts as far as it is inside.
      const inside = document.createRange();
      inside.selectNodeContents(box);
      if (range.compareBoundaryPoints(Range.START_TO_START, inside) > 0) inside.setStart(range.startContainer, range.startOffset);
      if (range.compareBoundaryPoints(Range.END_TO_END, inside) < 0) inside.setEnd(range.endContainer, range.endOffset);
      const words = inside.toString();
      const lead = document.createRange();
      lead.setStart(box, 0);
      lead.setEnd(inside.startContainer, inside.startOffset);
      // Blanks at the edges are the hand's, not the answer's.
      const skipped = words.length - words.trimStart().length;
      const start = data.start + length(lead.toString()) + length(words.slice(0, skipped));
      const end = start + length(words.trim());
      chosen = start < end ? { start, end } : null;
    }
    tell();
  };
  document.addEventListener("selectionchange", read);
  left.set(root, () => document.removeEventListener("selectionchange", read));
  answer.addEventListener("pointerdown", (event) => event.preventDefault()); // which would end the selection
  answer.addEventListener("click", () => {
    if (!chosen) return;
    const given = chosen;
    chosen = null;
    document.getSelection().removeAllRanges();
    tell();
    setTriggerValue("answer", given);
  });
  tell();

  const list = el("ul", "rs-jt-list");
  for (const one of within) {
    const item = el("li", "");
    const whole = one.from === 0 && one.to === characters.length;
    const words = whole ? "this chunk" : `“${characters.slice(one.from, one.to).join("").replace(/\s+/g, " ")}”`;
    item.append(el("span", "rs-jt-kind", one.golden ? "★ Golden" : "✕ Not relevant"));
    const quote = el("bdi", "rs-jt-quote", words);
    quote.title = `Characters ${span(one)} of the document`;
    const back = el("button", "rs-jt-back", "Take back");
    back.type = "button";
    back.setAttribute("aria-label", `Take back: ${one.golden ? "golden" : "not relevant"}, characters ${span(one)}`);
    back.addEventListener("click", () => {
      back.disabled = true;
      setTriggerValue("back", { start: one.start, end: one.end });
    });
    item.append(quote, back);
    list.append(item);
  }

  root.replaceChildren(box, bar, list);
  const known = root.dataset.shown === data.text;
  // Only this box scrolls, to the evidence, when the chunk is another one.
  box.scrollTop = known || !first ? scrolled : Math.max(0, first.offsetTop - box.offsetTop - box.clientHeight / 3);
  root.dataset.shown = data.text;
  return () => left.get(root)?.();
}
