"use strict";
const { form, digest, entries, items, columns, stamps, delimiter, keepsOpen } = JSON.parse(
  document.getElementById("content").textContent,
);
const KEYS = "1234567890qwertziopadfghjklyxcvb";
const goesOnAlone = entries.length === 1 && entries[0].kind === "choice";
// One key for each item, so that tabs write only what is changed in them.
const storageKey = `custos:${form}:${digest}`;
const filled = {};
const changes = [];
let position = 0;
let active = 0;
let isKept = true;

const byId = (id) => document.getElementById(id);

function say(text, isFault = false) {
  byId("message").textContent = text;
  byId("message").classList.toggle("fault", isFault);
}

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    isKept = false;
    return null;
  }
}

function store(key, text) {
  try {
    localStorage.setItem(key, text);
  } catch {
    isKept = false;
  }
}

const keyOf = (item) => `${storageKey}:${item.item}`;

// Take what this browser holds of an item, where another tab changed it later.
function readAgain(item) {
  const kept = JSON.parse(stored(keyOf(item)) || "null");
  if (kept && kept.at > (filled[item.item]?.at ?? 0)) filled[item.item] = kept;
}

function valuesOf(item) {
  return filled[item.item]?.values || item.startValues;
}

function isAsked(entry, given) {
  const leaving = entries.find((other) => other.leavesOut);
  if (leaving && given[leaving.name]?.length) return entry.leavesOut;
  return !entry.askedIf || entry.askedIf[1].includes(given[entry.askedIf[0]]);
}

function words(text) {
  const ideographs = /[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]/gu;
  const rest = text.normalize("NFKC").replace(ideographs, " ");
  const letters = rest.match(/[\p{L}\p{N}\p{M}]+/gu) || [];
  return letters.length + (text.match(ideographs) || []).length;
}

function fault(entry, given) {
  const value = given[entry.name];
  if (!isAsked(entry, given)) return "";
  if (!value || !value.length) return entry.required ? `${entry.prompt} is not filled in.` : "";
  if (entry.kind !== "text" || words(value) >= entry.minWords) return "";
  return `${entry.prompt} ${words(value)} of ${entry.minWords} words.`;
}

function faultOf(item) {
  const given = valuesOf(item);
  return entries.map((entry) => fault(entry, given)).find(Boolean) || "";
}

function keep(item, given) {
  for (const entry of entries) {
    if (!isAsked(entry, given) && !entry.prefilled) delete given[entry.name];
  }
  const at = Math.max(Date.now(), (filled[item.item]?.at ?? 0) + 1);
  filled[item.item] = { values: given, at };
  store(keyOf(item), JSON.stringify(filled[item.item]));
  showProgress();
  writeSoon();
}

// Letters of one text are one change, as long as nothing else changes.
function set(entry, value) {
  const item = items[position];
  readAgain(item);
  const before = valuesOf(item);
  const last = changes.at(-1);
  if (entry.kind !== "text" || last?.item !== item || last.entry !== entry) {
    changes.push({ item, entry, before });
  }
  keep(item, { ...before, [entry.name]: value });
  changes.at(-1).at = filled[item.item].at;
}

function undo() {
  const change = changes.pop();
  if (!change) return say("There is nothing to undo.");
  const { item } = change;
  readAgain(item);
  const isLast = filled[item.item].at === change.at;
  if (isLast) {
    keep(item, { ...change.before });
    const earlier = changes.findLast((other) => other.item === item);
    if (earlier) earlier.at = filled[item.item].at;
  }
  show(items.indexOf(item));
  say(isLast ? "Undone." : "Another tab has changed this item since.", !isLast);
}

function showProgress() {
  const done = items.filter((item) => !faultOf(item)).length;
  byId("progress").textContent = `Item ${position + 1} of ${items.length}, ${done} finished`;
  Object.assign(byId("done"), { max: items.length, value: done });
  byId("lost").hidden = isKept;
}

function optionsOf(entry) {
  const few = items[position].options;
  return few ? entry.options.filter(([option]) => few.includes(option)) : entry.options;
}

// An option that is a digit has that key; the others have those that are left.
function keysOf(entry) {
  const names = optionsOf(entry).map(([option]) => option);
  const left = [...KEYS].filter((key) => !names.includes(key));
  return names.map((name) => (name.length === 1 && KEYS.includes(name) ? name : left.shift()));
}

// Beside its key, an option has its first letter, where no other begins with it.
function optionAt(entry, key) {
  const names = optionsOf(entry).map(([option]) => option);
  const number = keysOf(entry).indexOf(key);
  if (number >= 0 || ACTIONS[key]) return names[number];
  const starting = names.filter((name) => name.slice(0, 1).toLowerCase() === key);
  return starting.length === 1 ? starting[0] : undefined;
}

function choose(entry, option) {
  const focused = document.activeElement;
  const given = valuesOf(items[position])[entry.name];
  if (entry.kind === "choices") {
    const chosen = given || [];
    const without = chosen.filter((other) => other !== option);
    set(entry, without.length < chosen.length ? without : [...chosen, option]);
  } else {
    set(entry, option);
  }
  if (goesOnAlone && position + 1 < items.length) {
    show(position + 1);
    say(`Item ${position}: ${option}`);
    return;
  }
  showEntries();
  const again = [...byId("entries").querySelectorAll("input")];
  again.find((input) => input.name === focused.name && input.value === focused.value)?.focus();
  if (entry.kind !== "choices") advance();
  if (goesOnAlone) goOn();
}

function field(entry, given) {
  if (entry.kind === "text") {
    const area = make("textarea", { value: given[entry.name] || "", rows: entry.minWords ? 6 : 1 });
    area.setAttribute("aria-label", entry.prompt);
    area.addEventListener("input", () => set(entry, area.value));
    return [area, make("small", { textContent: entry.minWords ? `at least ${entry.minWords} words` : "" })];
  }
  const keys = keysOf(entry);
  return optionsOf(entry).map(([option, meaning], number) => {
    const isMany = entry.kind === "choices";
    const value = given[entry.name] || "";
    const input = make("input", {
      type: isMany ? "checkbox" : "radio",
      name: entry.name,
      value: option,
      checked: isMany ? value.includes(option) : value === option,
    });
    input.addEventListener("click", () => choose(entry, option));
    const hint = make("small", { textContent: meaning ? ` ${meaning}` : "" });
    return make("label", {}, make("kbd", { textContent: keys[number] }), input, ` ${option}`, hint);
  });
}

function showEntries() {
  const given = valuesOf(items[position]);
  const boxes = entries.map((entry, number) => {
    const legend = make("legend", { textContent: entry.prompt + (entry.required ? "" : " (optional)") });
    const box = make("fieldset", { hidden: !isAsked(entry, given) }, legend, ...field(entry, given));
    box.dataset.entry = entry.name;
    box.classList.toggle("active", number === active);
    box.addEventListener("focusin", () => mark(number));
    return box;
  });
  byId("entries").replaceChildren(...boxes);
}

function mark(number) {
  active = number;
  [...byId("entries").children].forEach((box, other) => box.classList.toggle("active", other === number));
}

function move(step, passes = () => false) {
  const given = valuesOf(items[position]);
  const skips = (entry) => entry && (!isAsked(entry, given) || passes(entry));
  let number = active + step;
  while (skips(entries[number])) number += step;
  if (!entries[number]) return;
  mark(number);
  const box = byId("entries").children[number];
  box.scrollIntoView({ block: "nearest" });
  const area = box.querySelector("textarea");
  if (area) area.focus();
  else document.activeElement.blur();
}

// Go on after an answer; texts that may be left out wait for the arrows.
function advance() {
  move(1, (entry) => entry.kind === "text" && !entry.required);
}

const written = (text) => make("pre", { textContent: text, dir: "auto" });

function show(number) {
  position = Math.max(0, Math.min(items.length - 1, number));
  active = 0;
  document.activeElement.blur();
  const item = items[position];
  const pictures = item.pictures.map((src) => make("img", { src, alt: "" }));
  const texts = item.texts.map(([heading, text]) =>
    make("details", { open: true }, make("summary", { textContent: heading }), written(text)));
  byId("shown").replaceChildren(...pictures, ...texts);
  const asides = item.asides.flatMap(([heading, text]) =>
    [make("dt", { textContent: heading }), make("dd", {}, written(text))]);
  byId("asides").replaceChildren(...asides);
  Object.assign(byId("more"), { hidden: !asides.length, open: false });
  say("");
  showEntries();
  showProgress();
  window.scrollTo(0, 0);
}

function goOn() {
  const problem = faultOf(items[position]);
  if (problem) say(problem, true);
  else if (position + 1 < items.length) show(position + 1);
  else say("That was the last item. Save your sheet.");
}

function nextOpen() {
  const order = items.map((_, number) => (position + 1 + number) % items.length);
  const open = order.find((number) => faultOf(items[number]));
  if (open === undefined) say("All items are finished. Save your sheet.");
  else show(open);
}

const NUMBER = /^[+-]?\d+([.,]\d+)?$/;
const FORMULA = /^(?=[=+\-@\t\r\n＝＋－＠]|(?:~')*\\N$)|(?<![^,;\t\r\n])(?=(?:~')*"*[=+\-@＝＋－＠]|(?:~')+"*[\t\r\n])/g;

// As judging/files/csv_rows.py does, which takes the guards away again.
const guarded = (text) => (NUMBER.test(text) ? text : text.replace(FORMULA, "~'"));

function answered(entry, item) {
  const given = valuesOf(item);
  const value = (isAsked(entry, given) && given[entry.name]) || "";
  return guarded(Array.isArray(value) ? value.join("; ") : value);
}

function quoted(text, always = false) {
  const isSplit = /["\r\n]/.test(text) || text.includes(delimiter);
  return always || isSplit ? `"${text.replaceAll('"', '""')}"` : text;
}

// Items that are started and not finished have no answers: half a row is none.
function answerAt(column, item) {
  const kept = filled[item.item];
  if (faultOf(item)) return "";
  if (column === stamps[0]) return guarded(byId("annotator").value.trim());
  if (column === stamps[1]) return kept ? new Date(kept.at).toISOString().slice(0, 19) + "Z" : "";
  return answered(entries.find((entry) => entry.name === column), item);
}

function fileLines() {
  const finished = items.filter((item) => !faultOf(item));
  const cells = (item) => item.cells.map((cell, number) => cell ?? answerAt(columns[number], item));
  const header = columns.map((name) => quoted(name, delimiter === "\t"));
  const lines = (keepsOpen ? items : finished).map((item) => cells(item).map((cell) => quoted(cell)));
  const text = "\ufeff" + [header, ...lines].map((line) => line.join(delimiter) + "\r\n").join("");
  return { text, told: `${finished.length} of ${items.length} items saved.` };
}

function fileName() {
  const annotator = byId("annotator").value.trim();
  if (annotator) {
    return `${annotator.replace(/[^\p{L}\p{N}_.-]+/gu, "-")}.${delimiter === "\t" ? "tsv" : "csv"}`;
  }
  say("Fill in your name first: the sheet is named after it.", true);
  byId("annotator").focus();
  return "";
}

function save() {
  const download = fileName();
  if (!download) return;
  const { text, told } = fileLines();
  make("a", { download, href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) }).click();
  say(told);
}

let file = null;
let writing = Promise.resolve();
let timer = 0;

async function pickFile() {
  const suggestedName = fileName();
  if (!suggestedName) return;
  try {
    file = await window.showSaveFilePicker({ suggestedName });
  } catch {
    return; // The person picked none.
  }
  writeFile();
}

function writeSoon() {
  clearTimeout(timer);
  if (file) timer = setTimeout(writeFile, 500);
}

function writeFile() {
  writing = writing.then(async () => {
    const { text, told } = fileLines();
    try {
      const stream = await file.createWritable();
      await stream.write(text);
      await stream.close();
      byId("pick").textContent = `${file.name}: ${told}`;
    } catch (error) {
      byId("pick").textContent = "Save to a file as I go";
      say(`${file.name} could not be written (${error.message}). Pick the file again.`, true);
      file = null;
    }
  });
}

const ACTIONS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  ArrowRight: () => show(position + 1),
  ArrowLeft: () => show(position - 1),
  Enter: goOn,
  n: nextOpen,
  s: save,
  u: undo,
  "?": () => (byId("guide").open = !byId("guide").open),
};

document.addEventListener("keydown", (event) => {
  const isWriting = event.target.matches("textarea, #annotator");
  const isUndo = event.key === "z" && (event.ctrlKey || event.metaKey) && !isWriting;
  if (isUndo) undo();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isWriting) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      event.target.blur();
      if (event.key === "Enter" && event.target.matches("textarea")) advance();
    }
    return;
  }
  if (event.target.matches("button, summary") && event.key === "Enter") return;
  const option = optionAt(entries[active], event.key);
  if (option !== undefined) {
    event.preventDefault();
    choose(entries[active], option);
  } else if (ACTIONS[event.key]) {
    event.preventDefault();
    ACTIONS[event.key]();
  }
});

function followOtherTabs() {
  const before = filled[items[position].item];
  items.forEach(readAgain);
  if (filled[items[position].item] !== before) showEntries();
  showProgress();
}

window.addEventListener("storage", followOtherTabs);
document.addEventListener("visibilitychange", followOtherTabs);
window.addEventListener("beforeunload", (event) => !isKept && event.preventDefault());
byId("entries").addEventListener("submit", (event) => event.preventDefault());
byId("annotator").value = stored(storageKey) || "";
byId("annotator").addEventListener("input", () => store(storageKey, byId("annotator").value.trim()));
byId("save").addEventListener("click", save);
byId("back").addEventListener("click", ACTIONS.ArrowLeft);
byId("undo").addEventListener("click", undo);
byId("open").addEventListener("click", nextOpen);
byId("forward").addEventListener("click", ACTIONS.ArrowRight);
byId("pick").addEventListener("click", pickFile);
byId("pick").hidden = !window.showSaveFilePicker;
items.forEach(readAgain);
show(Math.max(0, items.findIndex(faultOf)));
