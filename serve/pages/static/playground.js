"use strict";

/** What the page needs to know of the service (serve/pages/routes.py). */
const settings = JSON.parse(document.getElementById("settings").textContent);
const form = document.getElementById("form");
const answer = document.getElementById("answer");
const drop = document.getElementById("drop");
const thumbs = document.getElementById("thumbs");
let pictures = [];

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const task = () => settings.tasks[form.task.value];

/** What a judge takes of a task: its example, and its choices of variant and reference mode. */
const offer = () => settings.judges[form.judge.value][form.task.value];

/** What the fields held when an example was last filled in; later changes are the user's own. */
let filled = null;
const TEXTS = ["question", "references", "criteria", "response", "response_a", "response_b"];
const contents = () => JSON.stringify(TEXTS.map((name) => form[name].value));

function options(select, names) {
  select.replaceChildren(...names.map((name) => make("option", { text: name })));
}

/** Return whether a judge takes a variant, and a reference mode if one is given. */
function takes(judge, variant, mode) {
  const choices = settings.judges[judge][form.task.value]?.choices || [];
  return choices.some((choice) => choice.variant === variant && (!mode || choice.reference_mode === mode));
}

/** Say why something cannot be chosen, and which judge takes it instead. */
function whyGrey(name, variant, mode) {
  const judge = form.judge.value;
  const others = Object.keys(settings.judges).filter((other) => takes(other, variant, mode));
  const instead = others.length ? `${others.join(" and ")} ${others.length > 1 ? "were" : "was"}` : "no judge here was";
  return `“${name}” is grey: ${judge} was not trained for it in ${form.task.value}; ${instead}.`;
}

/** Show the fields of the chosen task. */
function showFields() {
  const { pair, critique, variants, modes, required } = task();
  const criteria = required.includes("criteria");
  const isShown = { pair, critique, criteria, single: !pair, options: pair || critique, variants: variants.length > 1, modes };
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = !isShown[part.dataset.for];
  for (const name of ["question", "references", "criteria"]) form[name].required = required.includes(name);
  form.response_a.required = form.response_b.required = pair;
}

function chooseTask() {
  options(form.variant, task().variants);
  const refused = [...form.variant.options].filter((option) => !takes(form.judge.value, option.value));
  for (const option of refused) option.disabled = true;
  form.variant.value = offer().example.variant || task().variants[0];
  document.getElementById("why-variant").textContent = refused.map((option) => whyGrey(option.value, option.value)).join(" ");
  showFields();
  if (filled === null || filled === contents()) fillExample();
  chooseMode();
}

/** Disable the reference modes that the judge would refuse, and say why. */
function chooseMode() {
  const variant = form.variant.value;
  const radios = [...form.reference_mode];
  for (const radio of radios) radio.disabled = !takes(form.judge.value, variant, radio.value);
  const refused = task().modes ? radios.filter((radio) => radio.disabled) : [];
  if (radios.some((radio) => radio.checked && radio.disabled)) radios.find((radio) => !radio.disabled).checked = true;
  document.getElementById("why-mode").textContent = refused.map((radio) => whyGrey(radio.parentElement.textContent.trim(), variant, radio.value)).join(" ");
}

function chooseJudge() {
  options(form.task, Object.keys(settings.judges[form.judge.value]));
  const preferred = settings.headline.task;
  if (settings.judges[form.judge.value][preferred]) form.task.value = preferred;
  chooseTask();
}

function fillExample() {
  const { example } = offer();
  form.question.value = example.question;
  for (const name of ["references", "criteria"]) form[name].value = (example[name] || []).join("\n");
  form.variant.value = example.variant || task().variants[0];
  form.reference_mode.value = example.reference_mode || "all";
  for (const name of ["response", "response_a", "response_b"]) form[name].value = example[name] || "";
  filled = contents();
  chooseMode();
}

function clearFields() {
  for (const name of TEXTS) form[name].value = "";
  pictures = [];
  showPictures();
  answer.replaceChildren();
  document.getElementById("calls").hidden = true;
  form.question.focus();
}

/** Return the body of POST /judge. */
function request() {
  const body = { judge: form.judge.value, task: form.task.value, variant: form.variant.value, question: form.question.value };
  const references = lines(form.references.value);
  if (references.length) body.references = references;
  if (task().required.includes("criteria")) body.criteria = lines(form.criteria.value);
  if (references.length && task().modes) body.reference_mode = form.reference_mode.value;
  if (task().pair) {
    Object.assign(body, { response_a: form.response_a.value, response_b: form.response_b.value });
    body.order = form.both.checked ? "both" : "given";
  } else body.response = form.response.value;
  if (pictures.length) body.images = pictures;
  if (task().critique && form.mode.value) body.mode = form.mode.value;
  return body;
}

function fail(message) {
  answer.replaceChildren(make("p", { class: "warn", role: "alert", text: message }));
}

const post = (path, body) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** Yield [name, data] of each event of a stream. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = /^event: (\w+)\ndata: (.*)$/s.exec(text.slice(0, end));
      text = text.slice(end + 2);
      if (event) yield [event[1], JSON.parse(event[2])]; // otherwise a comment, which keeps the connection open
    }
  }
}

async function judge(body) {
  const streams = task().critique && body.mode !== "score";
  const response = await post(streams ? "/judge/stream" : "/judge", body);
  if (!response.ok) {
    const { error } = await response.json();
    return fail(error.field ? `${error.field}: ${error.message}` : error.message);
  }
  if (!streams) return answer.replaceChildren(...showVerdict(await response.json()));
  const critique = make("blockquote");
  answer.replaceChildren(make("h3", { text: "Critique" }), critique);
  for await (const [name, data] of events(response)) {
    if (name === "critique") critique.textContent += data.text;
    else if (name === "verdict") answer.replaceChildren(...showVerdict(data));
    else fail(data.error.message);
  }
}

/** Show the call as it was sent, to copy. A picture is shown by a name instead of its data. */
function showCalls(body) {
  const copy = { ...body };
  if (copy.images) copy.images = copy.images.map((_, index) => `data:image/png;base64,PICTURE_${index + 1}`);
  const text = JSON.stringify(copy, null, 2);
  const url = `${location.origin}/judge`;
  const key = settings.has_keys ? "  -H \"Authorization: Bearer $CUSTOS_KEY\" \\\n" : "";
  document.getElementById("curl").textContent =
    `curl -s ${url} \\\n${key}  -H 'Content-Type: application/json' \\\n  -d '${text.replaceAll("'", "'\\''")}'`;
  const imports = settings.has_keys ? "import os\n\n" : "";
  const headers = settings.has_keys ? "\n    headers={\"Authorization\": \"Bearer \" + os.environ[\"CUSTOS_KEY\"]},\n   " : "";
  document.getElementById("python").textContent =
    `${imports}import json\n\nimport httpx\n\nrequest = json.loads(r"""\n${text}\n""")\n` +
    `answer = httpx.post("${url}",${headers} json=request, timeout=120)\nprint(answer.raise_for_status().json()["label"])`;
  document.getElementById("calls").hidden = false;
}

function showPictures() {
  thumbs.replaceChildren(...pictures.map((source, index) => {
    const remove = make("button", { type: "button", "aria-label": `Remove picture ${index + 1}`, text: "×" });
    remove.addEventListener("click", () => { pictures.splice(index, 1); showPictures(); });
    return make("li", {}, make("img", { src: source, alt: `Picture ${index + 1}` }), remove);
  }));
}

/** Add files to the pictures. They are copied first, as the file field's list is emptied soon. */
async function addPictures(files) {
  const kinds = document.getElementById("pictures").accept.split(",");
  for (const file of [...files]) {
    if (!kinds.includes(file.type)) { fail(`${file.name}: not a JPEG, PNG, WebP, GIF or BMP picture`); continue; }
    if (pictures.length === settings.max_images) { fail(`at most ${settings.max_images} pictures`); break; }
    const reader = new FileReader();
    await new Promise((done) => { reader.onload = done; reader.readAsDataURL(file); });
    pictures.push(reader.result);
  }
  showPictures();
}

form.judge.addEventListener("change", chooseJudge);
form.task.addEventListener("change", chooseTask);
form.variant.addEventListener("change", chooseMode);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = request();
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  showCalls(body);
  answer.replaceChildren(make("p", { class: "hint", text: "Judging …" }));
  try { await judge(body); } catch { fail("The service did not answer."); }
  button.disabled = false;
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
document.getElementById("example").addEventListener("click", fillExample);
document.getElementById("clear").addEventListener("click", clearFields);
document.getElementById("pictures").addEventListener("change", (event) => { addPictures(event.target.files); event.target.value = ""; });
document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) addPictures(event.clipboardData.files); });
drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); addPictures(event.dataTransfer.files); });
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
form.judge.value = settings.headline.judge;
chooseJudge();
