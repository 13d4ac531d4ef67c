const el = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = text;
  return node;
};

const count = new Intl.NumberFormat("en");

// Shapes on a field of 16 × 16, told apart without colour: [path, filled].
const STAR = "M8 1.6l1.95 4.2 4.55.55-3.37 3.1.9 4.5L8 11.7l-4.03 2.25.9-4.5L1.5 6.35l4.55-.55z";
const SHAPES = {
  golden: [[STAR, true]],
  partly: [[STAR, false], ["M8 1.6v10.1l-4.03 2.25.9-4.5L1.5 6.35l4.55-.55z", true]],
  rejected: [["M4 4l8 8M12 4l-8 8", false]],
  unjudged: [["M8 5.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 1 1 0-5z", false]],
  copy: [["M5.5 5.5V3.2c0-.7.5-1.2 1.2-1.2h6.1c.7 0 1.2.5 1.2 1.2v6.1c0 .7-.5 1.2-1.2 1.2h-2.3M3.2 5.5h6.1c.7 0 1.2.5 1.2 1.2v6.1c0 .7-.5 1.2-1.2 1.2H3.2c-.7 0-1.2-.5-1.2-1.2V6.7c0-.7.5-1.2 1.2-1.2z", false]],
  copied: [["M3 8.5l3.3 3.3L13 4.6", false]],
  up: [["M5.2 7.2L8 1.8c1.3 0 1.9.9 1.6 2.1l-.5 2.3h3.6c.9 0 1.5.8 1.3 1.7l-1 4.3c-.2.8-.8 1.3-1.6 1.3H5.2zM2 7.2h3.2v6.3H2z", null]],
};
SHAPES.down = SHAPES.up;

function icon(name, filled) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  for (const [shape, full] of SHAPES[name]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", shape);
    if (full ?? filled) path.setAttribute("class", "full");
    svg.append(path);
  }
  return svg;
}

function sign(line) {
  const node = el("span", "sign");
  node.append(icon(line.mark));
  node.title = line.mark_told;
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", line.mark_told);
  return node;
}

const THUMBS = { up: [1, "Answers the query", "+"], down: [0, "Not relevant", "−"] };

function thumb(name, line, of) {
  const [grade, told, key] = THUMBS[name];
  const node = el("button", `thumb ${name}`);
  node.type = "button";
  node.tabIndex = -1; // the card's own keys reach it
  node.dataset.grade = grade;
  node.dataset.told = told;
  node.title = `${told} (key ${key} on the card)${of}`;
  node.setAttribute("aria-label", `${told}: ${line.label}`);
  node.append(icon(name, false), icon(name, true));
  return node;
}

function copier(line) {
  const node = el("button", "copy");
  node.type = "button";
  node.tabIndex = -1;
  node.title = "Copy the passage (key c on the card)";
  node.setAttribute("aria-label", `Copy the passage ${line.label}`);
  node.append(icon("copy"), icon("copied"));
  return node;
}

// The clipboard's own call is there for pages of this computer and encrypted ones only.
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = el("textarea");
    box.value = text;
    box.style.cssText = "position:fixed;opacity:0";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

// A grade above 1, as imported sets have, is a thumb up as well.
const pressed = (verdict, node) => verdict !== null && verdict !== undefined && Math.min(verdict, 1) === Number(node.dataset.grade);

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
    button.title = [step.note || `Show ${step.title}`, step.recall].filter(Boolean).join("\n");
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

function piece(one, choose) {
  const node = el("button", "piece");
  node.type = "button";
  node.dataset.pick = one.id;
  node.addEventListener("click", () => choose(one.id));
  node.append(chip(one), el("span", one.rank ? "" : "lost", one.rank ? `rank ${count.format(one.rank)}` : "✕ lost"));
  node.title = one.rank ? "Why is this golden piece here?" : `${one.fate}: ${one.story}`;
  return node;
}

function judgedLine(told, choose, none) {
  const bar = el("div", "judged");
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "What is judged for this query");
  const begins = el("span", "begins", told.begins);
  begins.title = told.begins;
  bar.append(begins);
  if (told.pieces.length) {
    const pieces = el("span", "pieces");
    for (const one of told.pieces) pieces.append(piece(one, choose));
    if (told.more) pieces.append(el("span", "quiet", `and ${count.format(told.more)} more`));
    bar.append(pieces);
  }
  if (told.ends) bar.append(el("span", "quiet ends", told.ends));
  if (told.none !== null) {
    const label = el("label", "none");
    const box = el("input");
    box.type = "checkbox";
    box.checked = told.none;
    box.addEventListener("change", () => none(box.checked));
    label.append(box, "No answer in these documents");
    label.title = "Keeps the query among the judged ones, with nothing to find. A thumb up takes it back.";
    bar.append(label);
  }
  if (told.queries) bar.append(el("span", "quiet queries", told.queries));
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
  if (line.mark) {
    top.append(sign(line));
    node.classList.add(line.mark);
  }
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
  for (const sentence of line.said || []) {
    const said = el("div", "said", sentence);
    said.title = sentence;
    node.append(said);
  }
  if (line.parts) node.append(sums(line));
  if (line.excerpt && column.kind !== "fuse") node.append(excerptNode(line));
  if (column.unit !== "item") {
    const foot = el("div", "foot");
    const place = el("div", "where", where(line));
    place.title = where(line);
    const of = line.members && line.members.length > 1 ? `: ${line.label}, the best of its chunks` : "";
    foot.append(place, ...(line.copy ? [copier(line)] : []), thumb("up", line, of), thumb("down", line, of));
    node.append(foot);
    node.setAttribute("aria-keyshortcuts", line.copy ? "Enter + - c" : "Enter + -");
  }
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
  let above = 0;
  column.lines.forEach((line) => {
    // The chunk that is selected stands below the lines that are drawn, under the ranks left out.
    if (line.rank > above + 1) {
      const left = above + 2 === line.rank ? `rank ${count.format(above + 1)}` : `ranks ${span(above + 1, line.rank - 1)}`;
      list.append(el("li", "gap", `⋮ ${left} not drawn`));
    }
    list.append(card(line, column));
    above = line.rank;
  });
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
  const state = kept.get(root) || { scroll: {}, left: 0, selected: null, waiting: new Map() };
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
  const none = (on) => setTriggerValue("none", { on });
  const line = judgedLine(data.judged, (id) => choose(id), none);
  root.replaceChildren(strip(data.strip, reveal), line, board);

  const verdicts = new Map();
  data.columns.forEach((column) => column.lines.forEach((one) => {
    if (column.unit !== "item") verdicts.set(one.id, one.verdict ?? null);
  }));
  // A thumb counts at once; what is sent holds all that no redraw has confirmed yet.
  for (const [id, given] of state.waiting) {
    given.drawn += 1;
    const now = verdicts.get(id);
    const others = verdicts.has(id) && !given.seen.includes(now); // another window's
    if (!verdicts.has(id) || now === given.grade || others || given.drawn > 3) state.waiting.delete(id);
  }
  const verdictOf = (id) => (state.waiting.has(id) ? state.waiting.get(id).grade : verdicts.get(id));
  const drawThumbs = () => {
    root.querySelectorAll(".thumb").forEach((node) => {
      const on = pressed(verdictOf(node.closest(".card").dataset.pick), node);
      node.classList.toggle("on", on);
      node.setAttribute("aria-pressed", String(on));
    });
  };
  const judge = (node) => {
    const id = node.closest(".card").dataset.pick;
    const grade = pressed(verdictOf(id), node) ? null : Number(node.dataset.grade);
    // All that this window showed or sent since the last redraw: what another one judged is not taken back.
    const seen = [...(state.waiting.get(id)?.seen ?? [verdicts.get(id) ?? null]), grade];
    state.waiting.delete(id);
    state.waiting.set(id, { grade, seen, drawn: 0 });
    drawThumbs();
    setTriggerValue("judge", { all: [...state.waiting].map(([one, given]) => ({ id: one, grade: given.grade, seen: given.seen })) });
  };

  const texts = new Map();
  data.columns.forEach((column) => column.lines.forEach((one) => { if (one.copy) texts.set(one.id, one.copy); }));
  const copy = async (node) => {
    const card = node.closest(".card");
    if (!(await toClipboard(texts.get(card.dataset.pick)))) {
      node.title = "The browser does not let this page copy";
      return;
    }
    node.classList.add("done");
    node.title = "Copied";
    setTimeout(() => node.classList.remove("done"), 1500);
    if (data.tell_copies) setTriggerValue("copy", { id: card.dataset.pick });
  };

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
    root.querySelectorAll("button.piece").forEach((node) => {
      node.setAttribute("aria-pressed", String(node.dataset.pick === state.selected));
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
  const choose = (id) => {
    state.selected = id;
    mark();
    show();
    setTriggerValue("select", { id });
  };
  const pick = (node) => choose(state.selected !== null && names(node, state.selected) ? null : node.dataset.pick);
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
    const given = event.target.closest(".thumb");
    const copying = event.target.closest(".copy");
    const node = event.target.closest(".card");
    if (given) judge(given);
    else if (copying) copy(copying);
    else if (node) pick(node);
  });
  board.addEventListener("pointerover", (event) => hover(event.target.closest(".card")));
  board.addEventListener("pointerleave", () => hover(null));
  board.addEventListener("focusin", (event) => hover(event.target.closest(".card")));
  board.addEventListener("focusout", () => hover(null));
  board.addEventListener("keydown", (event) => {
    const node = event.target.closest(".card");
    if (!node) return;
    const given = { "+": ".up", "-": ".down", "−": ".down" }[event.key];
    const copying = event.key === "c" && node.querySelector(".copy");
    if ((given || copying) && (event.ctrlKey || event.metaKey)) return; // the browser's own: larger, smaller, copy
    if (given && !ofItem(node)) judge(node.querySelector(`.thumb${given}`));
    else if (copying) copy(copying);
    else if (event.key === "Enter" || event.key === " ") pick(node);
    else if (event.key.startsWith("Arrow")) {
      const next = step(node, event.key);
      if (next) reach(next);
    } else return;
    event.preventDefault();
  });

  state.selected = data.selected ?? null;
  mark();
  drawThumbs();
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
