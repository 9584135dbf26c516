"use strict";

const asked = JSON.parse(document.getElementById("asked").textContent);
const form = document.getElementById("form");
const answer = document.getElementById("answer");
const drop = document.getElementById("drop");
const thumbs = document.getElementById("thumbs");
let pictures = [];

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const task = () => asked.tasks[form.task.value];

/** Rubrics "variant/reference mode" that the judge was trained on; none: it takes all. */
const known = () => asked.judges[form.judge.value][form.task.value].map((name) => name.split("/")).filter(([, mode]) => mode);

function options(select, names) {
  select.replaceChildren(...names.map((name) => make("option", { text: name })));
}

/** Show the fields that the chosen judge and task have. */
function shape() {
  const { pair, critique, variants } = task();
  const shown = { pair, critique, single: !pair, options: pair || critique, variants: variants.length > 1 };
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = !shown[part.dataset.for];
  form.references.required = task().references;
  form.response_a.required = form.response_b.required = pair;
}

function chooseTask() {
  const variants = known().map(([variant]) => variant);
  options(form.variant, task().variants.filter((name) => !variants.length || variants.includes(name)));
  shape();
  chooseMode();
}

/** Leave out what the judge would refuse. */
function chooseMode() {
  const modes = known().filter(([variant]) => variant === form.variant.value).map(([, mode]) => mode);
  const radios = [...form.reference_mode];
  for (const radio of radios) radio.disabled = modes.length > 0 && !modes.includes(radio.value);
  if (radios.some((radio) => radio.checked && radio.disabled)) radios.find((radio) => !radio.disabled).checked = true;
}

function chooseJudge() {
  options(form.task, Object.keys(asked.judges[form.judge.value]));
  chooseTask();
}

/** The body of POST /judge. */
function request() {
  const body = { judge: form.judge.value, task: form.task.value, variant: form.variant.value, question: form.question.value };
  const references = lines(form.references.value);
  if (references.length) Object.assign(body, { references, reference_mode: form.reference_mode.value });
  if (task().pair) {
    Object.assign(body, { response_a: form.response_a.value, response_b: form.response_b.value });
    body.order = form.both.checked ? "both" : "given";
  } else body.response = form.response.value;
  if (pictures.length) body.images = pictures;
  if (task().critique && form.critique.checked) body.mode = "critique";
  return body;
}

function fail(message) {
  answer.replaceChildren(make("p", { class: "warn", role: "alert", text: message }));
}

const post = (path, body) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** Events of a stream, one after another. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, kind, data] = /^event: (\w+)\ndata: (.*)$/s.exec(text.slice(0, end));
      text = text.slice(end + 2);
      yield [kind, JSON.parse(data)];
    }
  }
}

async function judge(body) {
  const response = await post(body.mode === "critique" ? "/judge/stream" : "/judge", body);
  if (!response.ok) {
    const { error } = await response.json();
    return fail(error.field ? `${error.field}: ${error.message}` : error.message);
  }
  if (body.mode !== "critique") return answer.replaceChildren(...showVerdict(await response.json()));
  const critique = make("blockquote");
  answer.replaceChildren(make("h3", { text: "Critique" }), critique);
  for await (const [kind, data] of events(response)) {
    if (kind === "critique") critique.textContent += data.text;
    else if (kind === "verdict") answer.replaceChildren(...showVerdict(data));
    else fail(data.error.message);
  }
}

/** The same call, to copy; pictures are named rather than spelled out. */
function showCalls(body) {
  const shown = { ...body };
  if (shown.images) shown.images = shown.images.map((_, place) => `data:image/png;base64,PICTURE_${place + 1}`);
  const text = JSON.stringify(shown, null, 2);
  const url = `${location.origin}/judge`;
  const key = asked.has_keys ? "  -H \"Authorization: Bearer $CUSTOS_KEY\" \\\n" : "";
  document.getElementById("curl").textContent =
    `curl -s ${url} \\\n${key}  -H 'Content-Type: application/json' \\\n  -d '${text.replaceAll("'", "'\\''")}'`;
  const headers = asked.has_keys ? "import os\n\n" : "";
  const sent = asked.has_keys ? "\n    headers={\"Authorization\": \"Bearer \" + os.environ[\"CUSTOS_KEY\"]},\n   " : "";
  document.getElementById("python").textContent =
    `${headers}import json\n\nimport httpx\n\nrequest = json.loads(r"""\n${text}\n""")\n` +
    `answer = httpx.post("${url}",${sent} json=request, timeout=120)\nprint(answer.raise_for_status().json()["label"])`;
  document.getElementById("calls").hidden = false;
}

function showPictures() {
  thumbs.replaceChildren(...pictures.map((source, place) => {
    const remove = make("button", { type: "button", "aria-label": `Remove picture ${place + 1}`, text: "×" });
    remove.addEventListener("click", () => { pictures.splice(place, 1); showPictures(); });
    return make("li", {}, make("img", { src: source, alt: `Picture ${place + 1}` }), remove);
  }));
}

/** Files are copied first: a file field's own list empties when its value is cleared. */
async function take(files) {
  for (const file of [...files]) {
    if (!["image/jpeg", "image/png", "image/webp"].includes(file.type)) { fail(`${file.name}: not a JPEG, PNG or WebP picture`); continue; }
    if (pictures.length === asked.images) { fail(`at most ${asked.images} pictures`); break; }
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
document.getElementById("example").addEventListener("click", () => {
  const { example } = task();
  form.question.value = example.question;
  form.references.value = (example.references || []).join("\n");
  form.reference_mode.value = example.reference_mode || "any";
  for (const name of ["response", "response_a", "response_b"]) form[name].value = example[name] || "";
  chooseMode();
});
document.getElementById("pictures").addEventListener("change", (event) => { take(event.target.files); event.target.value = ""; });
document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) take(event.clipboardData.files); });
drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files); });
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
chooseJudge();
