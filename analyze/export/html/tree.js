// SPDX-License-Identifier: MIT
// tree.js: the same calls as trees that open: from main down, or from the allocating function up.

let treeBottomUp = false;

// A node: {name, note, title, cost, hit, isLeaf, children()}. Top-down it is a call.
function downNode(call) {
    return {
        name: nameOf(call), note: notesOf(call), title: fileOf(call) || moduleOf(call),
        cost: inclusive[state.cost][call],
        hit: found !== null && found.hit[call],
        isLeaf: !callees[call].some((callee) => inclusive[state.cost][callee] > 0),
        children: () => calleesByCost(call)
            .filter((callee) => found === null || found.around[callee] || found.within[callee])
            .map(downNode),
    };
}

// Bottom-up a node is a set of paths: where each stands, and what it bears. They part by callers.
function upNodes(paths) {
    const groups = new Map();
    for (const path of paths) {
        const key = isLeftOut(path.at) ? "left out" : calls.function[path.at];
        if (path.at !== 0) {
            groups.set(key, groups.get(key) || []);
            groups.get(key).push(path);
        }
    }
    const nodes = [];
    for (const [key, group] of groups) {
        const first = group[0].at;
        nodes.push({
            name: key === "left out" ? "(smaller)" : nameOf(first), note: "",
            title: fileOf(first) || moduleOf(first),
            cost: group.reduce((sum, path) => sum + path.cost, 0),
            hit: found !== null && found.hit[first],
            isLeaf: group.every((path) => calls.parent[path.at] === 0),
            children: () => upNodes(group.map((path) => ({at: calls.parent[path.at], cost: path.cost}))),
        });
    }
    return nodes.sort((a, b) => b.cost - a.cost);
}

function upRoots() {
    const self = calls.self[state.cost];
    const paths = [];
    for (let call = 1; call < callCount; call++) {
        if (self[call] > 0 && (found === null || found.within[call])) {
            paths.push({at: call, cost: self[call]});
        }
    }
    return upNodes(paths);
}

const mostBranches = 100;

function openFirst(list) {
    const button = list.querySelector("li:first-child > .line > button");
    if (button !== null && button.style.visibility !== "hidden") {
        button.click();
    }
}

function putNode(list, node) {
    const item = make("li", list);
    const line = make("div", item, "", "line");
    const open = make("button", line, "+");
    const total = data.costs[state.cost].total;
    make("span", line, formatPercent(node.cost, total), "numbers share");
    make("span", line, formatCost(node.cost), "numbers");
    make("span", line, node.name + node.note, "name" + (node.hit ? " found" : "")).title = node.title;
    let inner = null;
    function toggle() {
        if (inner === null) {
            inner = putNodes(item, node.children());
            // one caller or callee that bears everything: no choice, go on
            if (inner.children.length === 1) {
                openFirst(inner);
            }
        } else {
            inner.hidden = !inner.hidden;
        }
        open.textContent = inner.hidden ? "+" : "-";
        open.setAttribute("aria-expanded", String(!inner.hidden));
    }
    open.style.visibility = node.isLeaf ? "hidden" : "visible";
    open.setAttribute("aria-label", "open or close");
    open.setAttribute("aria-expanded", "false");
    open.addEventListener("click", toggle);
}

function putNodes(parent, nodes) {
    const list = make("ul", parent, "", "tree");
    for (const node of nodes.slice(0, mostBranches)) {
        putNode(list, node);
    }
    if (nodes.length > mostBranches) {
        make("li", list, "(" + formatCount(nodes.length - mostBranches) + " smaller)", "dim");
    }
    return list;
}

function showTree(section) {
    make("h2", section, data.costs[state.cost].title);
    const label = make("label", make("p", section));
    const box = make("input", label);
    box.type = "checkbox";
    box.id = "bottom-up";
    box.checked = treeBottomUp;
    label.append(" from the allocating function up");
    box.addEventListener("change", () => {
        treeBottomUp = box.checked;
        refresh();
    });
    const list = putNodes(section, treeBottomUp ? upRoots() : downNode(0).children());
    openFirst(list);
}
