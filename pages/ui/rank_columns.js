const el = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  return node;
};

const count = new Intl.NumberFormat("en");

function chip(line) {
  const node = el("span", "chip", line.label);
  if (line.hue !== undefined) node.style.setProperty("--hue", line.hue);
  else node.classList.add("item");
  return node;
}

function strip(steps, jump) {
  const bar = el("ol", "strip");
  steps.forEach((step, at) => {
    const box = el("li", step.on ? "step" : "step off");
    const button = el("button", "stepbutton");
    button.type = "button";
    button.title = step.note || `Show ${step.title}`;
    button.append(el("span", "steptitle", step.title));
    const amount = step.on
      ? count.format(step.count) + (step.of !== null ? ` / ${count.format(step.of)}` : "")
      : "off";
    button.append(el("span", "stepcount", amount));
    let under = step.ms !== null && step.on ? `${step.ms < 10 ? step.ms.toFixed(1) : Math.round(step.ms)} ms` : "";
    if (step.dollars) under += ` · $${step.dollars.toFixed(4)}`;
    button.append(el("span", "stepms", under));
    button.addEventListener("click", () => jump(step.name));
    box.append(button);
    bar.append(box);
    const next = steps[at + 1];
    if (next) {
      const beside = step.kind === "search" && next.kind === "search";
      const arrow = el("li", "arrow", beside ? "+" : "▸");
      arrow.setAttribute("aria-hidden", "true");
      bar.append(arrow);
    }
  });
  return bar;
}

function where(line) {
  const parts = [];
  if (line.pages && line.pages.length) {
    const pages = line.pages;
    parts.push(pages.length > 1 ? `p. ${pages[0]}–${pages[pages.length - 1]}` : `p. ${pages[0]}`);
  }
  if (line.start !== undefined) parts.push(span(line.start, line.end));
  return parts.join(" · ");
}

function excerptNode(line) {
  const node = el("p", "excerpt");
  if (line.cut_before) node.append("…");
  for (const [text, marked] of line.excerpt) node.append(marked ? el("mark", "", text) : text);
  if (line.cut_after) node.append("…");
  return node;
}

function sums(line) {
  const table = el("table", "parts");
  for (const part of line.parts) {
    const row = el("tr", part.rank ? "" : "none");
    row.append(el("th", "", part.title));
    row.append(el("td", "rankin", part.rank ? `#${count.format(part.rank)}` : "–"));
    row.append(el("td", "formula", part.formula));
    row.append(el("td", "term", part.digits));
    table.append(row);
  }
  return table;
}

const span = (from, to) => `${count.format(from)}–${count.format(to)}`;

function spans(line) {
  const bar = el("div", "spans");
  bar.setAttribute("aria-hidden", "true");
  const share = (length) => `${(100 * length) / (line.end - line.start)}%`;
  line.members.forEach((member) => {
    const part = el("span", "span");
    part.style.setProperty("--hue", member.hue);
    part.style.left = share(member.start - line.start);
    part.style.width = share(member.end - member.start);
    bar.append(part);
  });
  return bar;
}

function joined(line) {
  const box = el("div", "where");
  const gaps = line.gaps.map(([a, b]) => span(a, b));
  const filled = line.gaps.reduce((sum, [a, b]) => sum + b - a, 0);
  let told = gaps.length ? `${gaps.length > 1 ? "gaps" : "gap"} ${gaps.join(", ")}` : "no gap";
  if (gaps.length > 3) told = `${gaps.length} gaps, ${count.format(filled)} characters`;
  const words = el("div", "", `${line.members.length} chunks joined, ${told}`);
  words.title = gaps.length ? `Gaps: ${gaps.join(", ")}` : "The chunks touch or overlap";
  const chips = el("div", "chips");
  line.members.forEach((member) => {
    const one = chip(member);
    one.title = `Characters ${span(member.start, member.end)}`;
    chips.append(one);
  });
  box.append(words, spans(line), chips);
  return box;
}

function movement(line) {
  const box = el("span", "moves");
  if (line.was !== undefined) {
    const was = el("span", "was", line.was ? `was ${line.was}` : "new");
    was.title = line.was ? `Rank ${line.was} before the last change` : "Not listed before the last change";
    box.append(was);
  }
  if (line.move && line.was === undefined) {
    const move = el("span", line.move > 0 ? "up" : "down", `${line.move > 0 ? "▲" : "▼"}${Math.abs(line.move)}`);
    move.title = `${Math.abs(line.move)} place(s) ${line.move > 0 ? "above" : "below"} the stage before`;
    box.append(move);
  }
  return box;
}

function card(line, column) {
  const node = el("li", "card");
  node.tabIndex = -1;
  node.setAttribute("role", "button");
  node.dataset.ids = (line.members ? line.members.map((m) => m.id) : [line.id]).join("\n");
  node.dataset.document = column.unit === "item" ? line.id : line.document;
  node.dataset.pick = line.id;
  const top = el("div", "top");
  top.append(el("span", "rank", line.rank));
  top.append(chip(line));
  top.append(movement(line));
  const score = el("span", "score", line.digits);
  score.title = `${column.title} score ${line.score}`;
  top.append(score);
  node.append(top);
  const path = (line.path || []).filter((part) => part !== line.title);
  const full = [line.title, ...path].join(" › ");
  const title = el("div", "title", path.length ? path[path.length - 1] : line.title);
  title.title = full;
  node.append(title);
  if (path.length) {
    const above = el("div", "path", [line.title, ...path.slice(0, -1)].join(" › "));
    above.title = full;
    node.append(above);
  }
  if (column.unit === "item" && line.name !== line.title) node.append(el("div", "path", line.name));
  if (line.parts) node.append(sums(line));
  if (line.excerpt && column.kind !== "fuse") node.append(excerptNode(line));
  if (column.unit !== "item") node.append(el("div", "where", where(line)));
  if (line.members && line.members.length > 1) node.append(joined(line));
  if (line.dropped) {
    node.classList.add("dropped");
    node.append(el("div", "fate", line.dropped));
  }
  return node;
}

function section(column, more) {
  const box = el("section", column.on ? "column" : "column off");
  box.dataset.name = column.name;
  box.dataset.unit = column.unit;
  box.setAttribute("aria-label", `${column.title}: ${column.on ? `${column.count} lines` : "off"}`);
  const head = el("header", "head");
  head.append(el("h3", "", column.title));
  head.append(el("span", "count", column.on ? count.format(column.count) : "off"));
  box.append(head);
  const list = el("ol", "body");
  column.lines.forEach((line) => list.append(card(line, column)));
  if (column.note) list.prepend(el("li", "note", column.note));
  if (column.on && !column.lines.length && !column.note) list.append(el("li", "note", "Nothing found."));
  const left = column.count - column.lines.length;
  if (left > 0 && column.lines.length) {
    const item = el("li", "morerow");
    const button = el("button", "more", `Show more (${count.format(left)} left)`);
    button.type = "button";
    button.addEventListener("click", more);
    item.append(button);
    list.append(item);
  }
  box.append(list);
  return box;
}

const kept = new WeakMap(); // what outlives a redraw, by the component's root

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const state = kept.get(root) || { scroll: {}, left: 0, selected: null };
  kept.set(root, state);
  root.querySelectorAll(".body").forEach((body) => {
    state.scroll[body.parentElement.dataset.name] = body.scrollTop;
  });
  const oldBoard = root.querySelector(".board");
  if (oldBoard) state.left = oldBoard.scrollLeft;
  const focused = parentElement.activeElement;
  const focus = focused && focused.dataset.pick
    ? [focused.closest(".column").dataset.name, focused.dataset.pick]
    : null;

  const board = el("div", "board");
  const reveal = (name) => {
    const target = name === "kept" ? "passages" : name;
    const column = [...board.children].find((one) => one.dataset.name === target);
    if (column) board.scrollTo({ left: column.offsetLeft - board.offsetLeft, behavior: "smooth" });
  };
  data.columns.forEach((column) => {
    board.append(section(column, () => setTriggerValue("more", column.name)));
  });
  root.replaceChildren(strip(data.strip, reveal), board);

  const cards = [...root.querySelectorAll(".card")];
  // What is selected is a chunk, or an item: then its id is that of the document, which begins a chunk's.
  const documentOf = (id) => id.replace(/:\d+-\d+$/, "");
  const names = (node, id) => node.dataset.ids.split("\n").includes(id);
  const ofItem = (node) => node.closest(".column").dataset.unit === "item";
  const holds = (node, id) => (ofItem(node) ? documentOf(id) : id) === node.dataset.document || names(node, id);
  const mark = () => {
    cards.forEach((node) => {
      const on = state.selected !== null && holds(node, state.selected);
      node.classList.toggle("selected", on);
      node.setAttribute("aria-pressed", String(on));
    });
    root.classList.toggle("choosing", state.selected !== null);
  };
  const show = () => {
    root.querySelectorAll(".column").forEach((column) => {
      const first = column.querySelector(".card.selected");
      const body = column.querySelector(".body");
      if (!first) return;
      const top = first.offsetTop - body.offsetTop;
      if (top < body.scrollTop || top + first.offsetHeight > body.scrollTop + body.clientHeight) {
        body.scrollTop = Math.max(0, top - 8);
      }
    });
  };
  const pick = (node) => {
    state.selected = state.selected !== null && names(node, state.selected) ? null : node.dataset.pick;
    mark();
    show();
    setTriggerValue("select", { id: state.selected });
  };
  const hover = (node) => {
    const ids = node ? node.dataset.ids.split("\n") : [];
    cards.forEach((other) => other.classList.toggle("hover", ids.some((id) => holds(other, id))));
  };
  const step = (node, key) => {
    const column = node.closest(".column");
    if (key === "ArrowDown" || key === "ArrowUp") {
      const mine = [...column.querySelectorAll(".card")];
      return mine[mine.indexOf(node) + (key === "ArrowDown" ? 1 : -1)];
    }
    const columns = [...board.children].filter((one) => one.querySelector(".card"));
    const beside = columns[columns.indexOf(column) + (key === "ArrowRight" ? 1 : -1)];
    if (!beside) return null;
    const theirs = [...beside.querySelectorAll(".card")];
    return theirs.find((one) => holds(one, node.dataset.pick)) || theirs[0];
  };
  const reach = (node) => {
    cards.forEach((other) => { other.tabIndex = other === node ? 0 : -1; });
    node.focus();
  };

  board.addEventListener("click", (event) => {
    const node = event.target.closest(".card");
    if (node) pick(node);
  });
  board.addEventListener("pointerover", (event) => hover(event.target.closest(".card")));
  board.addEventListener("pointerleave", () => hover(null));
  board.addEventListener("focusin", (event) => hover(event.target.closest(".card")));
  board.addEventListener("focusout", () => hover(null));
  board.addEventListener("keydown", (event) => {
    const node = event.target.closest(".card");
    if (!node) return;
    if (event.key === "Enter" || event.key === " ") pick(node);
    else if (event.key.startsWith("Arrow")) {
      const next = step(node, event.key);
      if (next) reach(next);
    } else return;
    event.preventDefault();
  });

  state.selected = data.selected ?? null;
  mark();
  root.querySelectorAll(".body").forEach((body) => {
    body.scrollTop = state.scroll[body.parentElement.dataset.name] || 0;
  });
  board.scrollLeft = state.left;
  const again = focus && cards.find((one) => one.closest(".column").dataset.name === focus[0] && one.dataset.pick === focus[1]);
  if (again) reach(again);
  else if (cards.length) cards[0].tabIndex = 0;
  if (state.selected !== state.shown) show();
  state.shown = state.selected;
}
