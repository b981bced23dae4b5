// SPDX-License-Identifier: MIT
// flamegraph.js: makes the flame graph of an SVG file answer: click zooms into a frame, a search
// marks frames and says how much they bear, keys do both. Without it the picture is whole as well.
"use strict";

(function () {
    const svg = document.documentElement;
    const details = document.getElementById("details");
    const character = 6.7; // pixels, as where labels were cut before
    const labelRoom = 24;
    const rowHeight = 18;

    // What is drawn, by rows: a frame's caller is below it.
    const frames = Array.from(document.querySelectorAll(".f"), (element) => {
        const rect = element.querySelector("rect");
        const title = element.querySelector("title").textContent;
        return {
            element, rect, title,
            name: title.slice(0, title.lastIndexOf(" - ")),
            label: element.querySelector("text"),
            x: Number(rect.getAttribute("x")),
            y: Number(rect.getAttribute("y")),
            width: Number(rect.getAttribute("width")),
        };
    });
    const root = frames[0];
    const slack = 0.02; // positions were rounded
    let zoomed = root;
    let chosen = root;
    let pattern = null;

    function contains(outer, inner) {
        return inner.x >= outer.x - slack && inner.x + inner.width <= outer.x + outer.width + slack;
    }

    // ---- Drawing ----

    function fitLabel(frame, x, width) {
        const most = Math.floor((width - 4) / character);
        if (width < labelRoom) {
            if (frame.label) {
                frame.label.textContent = "";
            }
            return;
        }
        if (!frame.label) {
            frame.label = document.createElementNS(svg.namespaceURI, "text");
            frame.label.setAttribute("y", frame.y + 13);
            frame.element.appendChild(frame.label);
        }
        const shown = Array.from(frame.name);
        frame.label.setAttribute("x", (x + 3).toFixed(2));
        frame.label.textContent = shown.length <= most ? frame.name
            : shown.slice(0, Math.max(most - 2, 0)).join("") + "..";
    }

    function place(frame, x, width, outer) {
        frame.element.setAttribute("class", "f" + (outer ? " outer" : ""));
        frame.rect.setAttribute("x", x.toFixed(2));
        frame.rect.setAttribute("width", Math.max(width, 0.1).toFixed(2));
        fitLabel(frame, x, width);
    }

    // The frame fills the width; its callers below it do, too, and what is beside it goes.
    function zoom(frame) {
        const scale = root.width / frame.width;
        zoomed = frame;
        for (const other of frames) {
            if (other.y > frame.y && contains(other, frame)) {
                place(other, root.x, root.width, true);
            } else if (other.y <= frame.y && contains(frame, other)) {
                place(other, root.x + (other.x - frame.x) * scale, other.width * scale, false);
            } else {
                other.element.setAttribute("class", "f hidden");
            }
        }
        choose(frame);
        mark();
    }

    function tell(text) {
        details.textContent = text;
    }

    function choose(frame) {
        chosen.element.classList.remove("chosen");
        chosen = frame;
        chosen.element.classList.add("chosen");
        tell(frame.title);
    }

    // ---- Search ----

    function matcher(text) {
        try {
            return new RegExp(text, "i");
        } catch (error) {
            return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
        }
    }

    // Marks what is found, and adds up the widths of found frames that no found frame lies below.
    function mark() {
        const counted = [];
        let width = 0;
        for (const frame of frames) {
            const found = pattern !== null && frame !== root && pattern.test(frame.name);
            frame.element.classList.toggle("found", found);
            if (found && !counted.some((other) => other.y > frame.y && contains(other, frame))) {
                counted.push(frame); // callers come before what they call
                width += frame.width;
            }
        }
        result.textContent = pattern === null ? ""
            : (100 * width / root.width).toFixed(1) + "% found";
    }

    function search(text) {
        pattern = text === "" ? null : matcher(text);
        mark();
    }

    // ---- Tools: made here, since they do nothing without a script ----

    const html = "http://www.w3.org/1999/xhtml";
    const make = (name, parent) => parent.appendChild(document.createElementNS(html, name));
    const foreign = svg.appendChild(document.createElementNS(svg.namespaceURI, "foreignObject"));
    for (const [name, value] of [["x", 700], ["y", 6], ["width", 490], ["height", 28]]) {
        foreign.setAttribute(name, value);
    }
    const tools = make("div", foreign);
    tools.className = "tools";
    const result = make("span", tools);
    result.id = "result";
    const input = make("input", tools);
    input.type = "search";
    input.id = "search";
    input.placeholder = "search: text or regex (/)";
    input.setAttribute("aria-label", "search functions");
    const reset = make("button", tools);
    reset.id = "reset";
    reset.textContent = "reset";

    // ---- What people do ----

    function resetAll() {
        input.value = "";
        pattern = null;
        zoom(root);
    }

    function neighbour(key) {
        const seen = frames.filter((frame) => !frame.element.classList.contains("hidden"));
        const row = (y) => seen.filter((frame) => frame.y === y);
        const at = chosen;
        switch (key) {
        case "ArrowUp":
            return row(at.y - rowHeight).find((frame) => contains(at, frame));
        case "ArrowDown":
            return row(at.y + rowHeight).find((frame) => contains(frame, at));
        case "ArrowLeft":
            return row(at.y).filter((frame) => frame.x < at.x).pop();
        default:
            return row(at.y).find((frame) => frame.x > at.x);
        }
    }

    function press(event) {
        if (event.target === input) {
            if (event.key === "Escape") {
                input.blur();
                resetAll();
            }
            return;
        }
        if (event.key === "/" || (event.key === "f" && event.ctrlKey)) {
            input.focus();
        } else if (event.key === "Escape") {
            resetAll();
        } else if (event.key === "Enter") {
            zoom(chosen);
        } else if (event.key.startsWith("Arrow")) {
            const next = neighbour(event.key);
            if (next) {
                choose(next);
            }
        } else {
            return;
        }
        event.preventDefault();
    }

    for (const frame of frames) {
        frame.element.addEventListener("click", () => zoom(frame));
        frame.element.addEventListener("mouseenter", () => tell(frame.title));
    }
    input.addEventListener("input", () => search(input.value));
    reset.addEventListener("click", resetAll);
    window.addEventListener("keydown", press);
    tell(root.title);
}());
