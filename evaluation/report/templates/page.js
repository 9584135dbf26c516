"use strict";
const images = JSON.parse(document.getElementById("images").textContent);
const items = [...document.querySelectorAll("details.item")];
const filters = document.getElementById("filters");
const choices = [...filters.querySelectorAll("select")];
const search = document.getElementById("search");
const texts = items.map((item) => item.textContent.toLowerCase());

function show() {
  const wanted = search.value.toLowerCase().trim();
  let count = 0;
  items.forEach((item, index) => {
    const fits =
      texts[index].includes(wanted) &&
      choices.every((c) => !c.value || item.getAttribute("data-" + c.dataset.field) === c.value);
    item.hidden = !fits;
    count += fits;
  });
  document.getElementById("count").textContent = `${count} of ${items.length}`;
}

function fill(item) {
  for (const image of item.querySelectorAll("img[data-image]")) {
    image.src = images[image.dataset.image];
  }
}

for (const item of items) {
  item.addEventListener("toggle", () => fill(item));
  if (item.open) fill(item);
}
filters.addEventListener("input", show);
filters.addEventListener("submit", (event) => event.preventDefault());
show();
