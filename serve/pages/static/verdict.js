"use strict";

/** Return an element with text and children. Text from outside is never read as markup. */
function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const percent = (p) => `${(100 * p).toFixed(1)} %`;

/** Return one bar per label; the likeliest is marked. */
function bars(posterior) {
  const best = Math.max(...Object.values(posterior));
  const box = make("div", { class: "bars" });
  for (const [label, p] of Object.entries(posterior)) {
    const mark = p === best ? { class: "best" } : {};
    const bar = make("progress", { max: 1, value: p, "aria-label": `${label}: ${percent(p)}` });
    box.append(make("span", { text: label, ...mark }), bar, make("span", { text: percent(p), ...mark }));
  }
  return box;
}

/** Return the elements that show a verdict. */
function showVerdict(verdict) {
  const parts = [];
  const label = [verdict.label, verdict.error_type].filter(Boolean).join("; ");
  parts.push(make("p", { class: "label", text: label || "No label" }));
  const sentences = [`Status: ${verdict.status}.`];
  if (verdict.confidence !== null) sentences.push(`Confidence ${percent(verdict.confidence)}.`);
  if (verdict.stated_confidence !== null) sentences.push(`In its own text the judge states ${verdict.stated_confidence}.`);
  if (verdict.score !== null) sentences.push(`Score ${verdict.score}.`);
  if (verdict.posterior === "approximate") sentences.push("The probabilities are approximate.");
  parts.push(make("p", { text: sentences.join(" ") }));
  if (verdict.message) parts.push(make("p", { class: "warn", text: verdict.message }));
  if (verdict.needs_review) parts.push(make("p", { class: "warn", text: "The two orders disagree: a person should look at this pair." }));
  if (verdict.truncated_input) parts.push(make("p", { class: "warn", text: "The middle of a long response was left out." }));
  if (Object.keys(verdict.probabilities).length) {
    parts.push(make("h3", { text: "Probability of every label" }), bars(verdict.probabilities));
  }
  for (const pass of verdict.passes) {
    const order = pass.order === "given" ? "As given" : "Swapped: A and B change places";
    if (pass.critique) {
      parts.push(make("h3", { text: `Critique${verdict.passes.length > 1 ? `. ${order}` : ""}` }));
      parts.push(make("blockquote", { text: pass.critique }));
    }
    if (verdict.passes.length > 1) parts.push(make("h3", { text: order }), bars(pass.posterior));
  }
  if (verdict.critique && !verdict.passes.length) parts.push(make("blockquote", { text: verdict.critique }));
  const judged = make("p", { class: "hint" });
  if (verdict.judge_name) judged.append("Judged by ", make("code", { text: verdict.judge_name }));
  if (verdict.rubric) judged.append(" under the rubric ", make("code", { text: verdict.rubric }));
  if (verdict.judge) judged.append(verdict.judge_name ? ". " : "", "Fingerprint ", make("code", { text: verdict.judge }));
  if (judged.hasChildNodes()) parts.push(judged);
  return parts;
}
