"use strict";
const { form, entries, items } = JSON.parse(document.getElementById("content").textContent);
const KEYS = "1234567890qwertzuiopadfghjklyxcvb";
const storageKey = `custos:${form}:${items.map((item) => item.item).join("")}`;
const stored = JSON.parse(localStorage.getItem(storageKey) || "{}");
const filled = stored.filled || {};
let position = 0;
let active = 0;

const byId = (id) => document.getElementById(id);
byId("annotator").value = stored.annotator || "";

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function valuesOf(item) {
  return filled[item.item] || item.startValues;
}

function values() {
  return (filled[items[position].item] ??= { ...items[position].startValues });
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

function keep() {
  const given = values();
  for (const entry of entries) {
    if (!isAsked(entry, given) && !entry.prefilled) delete given[entry.name];
  }
  const annotator = byId("annotator").value.trim();
  localStorage.setItem(storageKey, JSON.stringify({ annotator, filled }));
  const done = items.filter((item) => !faultOf(item)).length;
  byId("progress").textContent = `Item ${position + 1} of ${items.length}, ${done} finished`;
}

// An option that is a digit has that key; the others have those that are left.
function keysOf(entry) {
  const names = entry.options.map(([option]) => option);
  const left = [...KEYS].filter((key) => !names.includes(key));
  return names.map((name) => (name.length === 1 && KEYS.includes(name) ? name : left.shift()));
}

function set(entry, value) {
  const focused = document.activeElement;
  values()[entry.name] = value;
  keep();
  showEntries();
  const again = [...byId("entries").querySelectorAll("input")];
  again.find((input) => input.name === focused.name && input.value === focused.value)?.focus();
}

function choose(entry, option) {
  const given = values();
  if (entry.kind === "choices") {
    const chosen = given[entry.name] || [];
    const next = chosen.includes(option)
      ? chosen.filter((other) => other !== option)
      : [...chosen, option];
    set(entry, next);
    return;
  }
  set(entry, option);
  advance();
}

function field(entry, given) {
  if (entry.kind === "text") {
    const area = make("textarea", { value: given[entry.name] || "", rows: entry.minWords ? 6 : 1 });
    area.setAttribute("aria-label", entry.prompt);
    area.addEventListener("input", () => {
      given[entry.name] = area.value;
      keep();
    });
    return [area, make("small", { textContent: entry.minWords ? `at least ${entry.minWords} words` : "" })];
  }
  const keys = keysOf(entry);
  return entry.options.map(([option, meaning], number) => {
    const isMany = entry.kind === "choices";
    const value = given[entry.name] || "";
    const input = make("input", {
      type: isMany ? "checkbox" : "radio",
      name: entry.name,
      value: option,
      checked: isMany ? value.includes(option) : value === option,
    });
    input.addEventListener("change", () => choose(entry, option));
    const hint = make("small", { textContent: meaning ? ` ${meaning}` : "" });
    return make("label", {}, make("kbd", { textContent: keys[number] }), input, ` ${option}`, hint);
  });
}

function showEntries() {
  const given = values();
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
  const given = values();
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

function show(number) {
  position = Math.max(0, Math.min(items.length - 1, number));
  active = 0;
  document.activeElement.blur();
  const item = items[position];
  const pictures = item.pictures.map((src) => make("img", { src, alt: "" }));
  const texts = item.texts.map(([heading, text]) =>
    make("details", { open: true }, make("summary", { textContent: heading }), make("pre", { textContent: text })));
  byId("shown").replaceChildren(...pictures, ...texts);
  byId("message").textContent = "";
  showEntries();
  keep();
  window.scrollTo(0, 0);
}

function goOn() {
  const problem = faultOf(items[position]);
  if (problem) byId("message").textContent = problem;
  else if (position + 1 < items.length) show(position + 1);
  else byId("message").textContent = "That was the last item. Save your sheet.";
}

function nextOpen() {
  const order = items.map((_, number) => (position + 1 + number) % items.length);
  const open = order.find((number) => faultOf(items[number]));
  if (open === undefined) byId("message").textContent = "All items are finished. Save your sheet.";
  else show(open);
}

function answered(entry, given) {
  return isAsked(entry, given) ? given[entry.name] : "";
}

const NUMBER = /^[+-]?\d+([.,]\d+)?$/;
const FORMULA = /^(?=[=+\-@\t\r\n＝＋－＠])|(?<![^,;\t\r\n])(?=(?:~')*"*[=+\-@＝＋－＠]|(?:~')+"*[\t\r\n])/g;

function cell(value) {
  let text = Array.isArray(value) ? value.join("; ") : value || "";
  // Guarded as judging/files/spreadsheets.py does, which takes the guards away again.
  if (!NUMBER.test(text)) text = text.replace(FORMULA, "~'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function save() {
  const annotator = byId("annotator").value.trim();
  if (!annotator) {
    byId("message").textContent = "Fill in your name first: the sheet is named after it.";
    byId("annotator").focus();
    return;
  }
  // Items that are started and not finished stay out: half a row is no answer.
  const finished = items.filter((item) => !faultOf(item));
  const lines = [
    ["item", ...entries.map((entry) => entry.name)],
    ...finished.map((item) => [item.item, ...entries.map((entry) => answered(entry, valuesOf(item)))]),
  ];
  const text = "\ufeff" + lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
  const link = make("a", {
    download: `${annotator.replace(/[^\p{L}\p{N}_.-]+/gu, "-")}.csv`,
    href: URL.createObjectURL(new Blob([text], { type: "text/csv" })),
  });
  link.click();
  byId("message").textContent = `${finished.length} of ${items.length} items saved.`;
}

const ACTIONS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  ArrowRight: () => show(position + 1),
  ArrowLeft: () => show(position - 1),
  Enter: goOn,
  n: nextOpen,
  s: save,
  "?": () => (byId("guide").open = !byId("guide").open),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("textarea, #annotator")) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      event.target.blur();
      if (event.key === "Enter" && event.target.matches("textarea")) advance();
    }
    return;
  }
  if (event.target.matches("button, summary") && event.key === "Enter") return;
  const entry = entries[active];
  const number = keysOf(entry).indexOf(event.key);
  if (number >= 0) {
    event.preventDefault();
    choose(entry, entry.options[number][0]);
  } else if (ACTIONS[event.key]) {
    event.preventDefault();
    ACTIONS[event.key]();
  }
});
byId("entries").addEventListener("submit", (event) => event.preventDefault());
byId("annotator").addEventListener("input", keep);
byId("save").addEventListener("click", save);
show(0);
