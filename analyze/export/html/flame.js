// SPDX-License-Identifier: MIT
// flame.js: the flame graph: width is cost, callers stand on top. A click zooms in.

const flameRow = 18;
const flameLeast = 0.6; // pixels: what is narrower is not drawn
const flameLabel = 24;  // pixels: what is narrower has no label
let flameZoom = 0;

// [{call, left, width, row, outer}] in shares of the width, outermost first.
function layFlame(least) {
    const sums = inclusive[state.cost];
    const boxes = pathOf(flameZoom).slice(0, -1)
        .map((call, row) => ({call, left: 0, width: 1, row: row + 1, outer: true}));
    if (flameZoom !== 0) {
        boxes.unshift({call: 0, left: 0, width: 1, row: 0, outer: true});
    }
    const waiting = [{call: flameZoom, left: 0, width: 1, row: boxes.length, outer: false}];
    while (waiting.length > 0) {
        const box = waiting.pop();
        boxes.push(box);
        let left = box.left;
        for (const call of calleesByCost(box.call)) {
            const width = sums[call] / sums[flameZoom];
            if (width >= least) {
                waiting.push({call, left, width, row: box.row + 1, outer: false});
            }
            left += width;
        }
    }
    return boxes;
}

function titleOf(call) {
    const file = fileOf(call) || moduleOf(call);
    return nameOf(call) + notesOf(call) + (file ? " (" + file + ")" : "") + ": "
        + describeCost(inclusive[state.cost][call]);
}

// pixels: of the whole width. It is not asked for again while boxes are added: each time everything
// would be laid out anew.
function drawBox(area, box, pixels, details) {
    const label = box.width * pixels < flameLabel ? "" : nameOf(box.call) + notesOf(box.call);
    const element = make("button", area, label, "frame name");
    element.dataset.call = box.call;
    element.style.left = 100 * box.left + "%";
    element.style.width = 100 * box.width + "%";
    element.style.top = box.row * flameRow + "px";
    element.style.background = colorOf(box.call);
    element.title = titleOf(box.call);
    element.setAttribute("aria-label", element.title);
    element.classList.toggle("outer", box.outer);
    element.classList.toggle("found", found !== null && found.hit[box.call]);
    element.addEventListener("mouseenter", () => { details.textContent = element.title; });
    element.addEventListener("focus", () => { details.textContent = element.title; });
    return element;
}

// Arrow keys go to callers, callees and siblings.
function neighbourOf(area, call, key) {
    const sibling = calleesByCost(calls.parent[call]);
    const place = sibling.indexOf(call);
    const target = {
        ArrowUp: call === 0 ? undefined : calls.parent[call],
        ArrowDown: calleesByCost(call)[0],
        ArrowLeft: sibling[place - 1],
        ArrowRight: sibling[place + 1],
    }[key];
    return target === undefined ? null : area.querySelector('[data-call="' + target + '"]');
}

function showFlame(section) {
    make("h2", section, data.costs[state.cost].title);
    const details = make("div", section, "", "details");
    const area = make("div", section, "", "flame");
    const sums = inclusive[state.cost];
    if (sums[flameZoom] === 0) {
        flameZoom = 0;
    }
    if (sums[0] === 0) {
        details.textContent = "nothing";
        return;
    }
    const pixels = Math.max(section.clientWidth, 300);
    const boxes = layFlame(flameLeast / pixels);
    for (const box of boxes) {
        drawBox(area, box, pixels, details);
    }
    area.style.height = (Math.max(...boxes.map((box) => box.row)) + 1) * flameRow + "px";
    details.textContent = titleOf(flameZoom);
    area.addEventListener("click", (event) => {
        if (event.target.dataset.call !== undefined) {
            zoomFlame(Number(event.target.dataset.call));
        }
    });
    area.addEventListener("keydown", (event) => {
        const next = event.target.dataset.call !== undefined && event.key.startsWith("Arrow")
            ? neighbourOf(area, Number(event.target.dataset.call), event.key) : null;
        if (next) {
            next.focus();
            event.preventDefault();
        }
    });
}

function zoomFlame(call) {
    flameZoom = isLeftOut(call) ? calls.parent[call] : call;
    refresh();
    const box = document.querySelector('.frame[data-call="' + flameZoom + '"]');
    if (box) {
        box.focus({preventScroll: true});
    }
}
