"use strict";

const fresh = document.getElementById("fresh");

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch("/pages/queue.json");
    if (!response.ok) throw new Error(response.status);
    const now = await response.json();
    document.getElementById("state").textContent = now.state;
    document.getElementById("tokens").textContent = now.waiting_tokens.toLocaleString("en");
    for (const row of document.querySelectorAll("[data-judge]")) {
      for (const cell of row.querySelectorAll("[data-value]")) {
        cell.textContent = now[cell.dataset.value][row.dataset.judge] ?? 0;
      }
    }
    for (const cell of document.querySelectorAll("[data-counter]")) {
      cell.textContent = now.counters[cell.dataset.counter].toLocaleString("en");
    }
    fresh.textContent = `As of ${new Date().toLocaleTimeString()}.`;
  } catch {
    fresh.textContent = "The service does not answer.";
  }
}

setInterval(refresh, 1000);
