"use strict";

const updated = document.getElementById("updated");

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch("/pages/queue.json");
    if (!response.ok) throw new Error(response.status);
    const queue = await response.json();
    document.getElementById("state").textContent = queue.state;
    document.getElementById("tokens").textContent = queue.waiting_tokens.toLocaleString("en");
    for (const row of document.querySelectorAll("[data-judge]")) {
      for (const cell of row.querySelectorAll("[data-value]")) {
        cell.textContent = queue[cell.dataset.value][row.dataset.judge] ?? 0;
      }
    }
    for (const cell of document.querySelectorAll("[data-counter]")) {
      cell.textContent = queue.counters[cell.dataset.counter].toLocaleString("en");
    }
    updated.textContent = `As of ${new Date().toLocaleTimeString()}.`;
  } catch {
    updated.textContent = "The service does not answer.";
  }
}

setInterval(refresh, 1000);
