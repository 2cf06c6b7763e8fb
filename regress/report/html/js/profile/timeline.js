// The timeline: a lane for each thread, device and depth. Dragging or the buttons choose a part of it; arrows go from entry to
// entry.
(R => {
  const {h, text} = R;
  const ROW = 20,
    HEAD = 16,
    COLORS = 8;
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  const lanesOf = entries => {
    const byLane = new Map();
    for (const entry of entries) {
      const key = `${entry.device}\n${entry.thread}\n${String(entry.depth).padStart(4, "0")}`;
      if (!byLane.has(key)) byLane.set(key, []);
      byLane.get(key).push(entry);
    }
    const severalThreads = new Set(entries.map(entry => entry.thread)).size > 1;
    return [...byLane]
      .sort(([a], [b]) => compare(b.split("\n")[0], a.split("\n")[0]) || compare(a, b)) // the device above the host
      .map(([key, own]) => {
        const [device, thread, depth] = key.split("\n");
        const inside = Number(depth) ? ` ${"·".repeat(Math.min(6, Number(depth)))}` : "";
        return {
          label: `${device.toUpperCase()}${severalThreads ? ` ${thread}` : ""}${inside}`,
          entries: own.sort((a, b) => a.start_s - b.start_s),
        };
      });
  };

  // Round moments, about this many.
  const round = (from, to, count) => {
    const rough = (to - from) / count,
      unit = 10 ** Math.floor(Math.log10(rough)),
      step = unit * [1, 2, 5, 10].find(multiple => multiple * unit >= rough),
      first = Math.ceil(from / step);
    return Array.from({length: Math.floor(to / step) - first + 1}, (_, at) => (first + at) * step);
  };

  R.timelineChart = (entries, operations, title = "Timeline") => {
    if (!entries.length) return null;
    const rank = new Map(operations.map((operation, at) => [operation.operation, at % COLORS]));
    const lanes = lanesOf(entries),
      ordered = [...entries].sort((a, b) => a.start_s - b.start_s),
      first = ordered[0].start_s,
      last = Math.max(...entries.map(entry => entry.end_s)),
      whole = [first, Math.max(last, first + 1e-9)];
    let [from, to] = whole,
      chosen = null,
      boxes = [];
    const canvas = h("canvas", {"aria-hidden": "true"}),
      said = h("p", {class: "said small", role: "status"}),
      labels = h("div", {class: "lanes", "aria-hidden": "true"}, lanes.map(lane => h("span", {title: lane.label}, lane.label)));
    const about = entry => {
      const when = `${text.value(entry.duration_s, "s")} from ${text.value(entry.start_s, "s")}`,
        parts = [`${entry.operation}: ${when}`, entry.place ?? `${entry.device}, thread ${entry.thread}`];
      if (typeof entry.busy_s === "number")
        parts.push(
          `kernels ${text.value(entry.busy_s, "s")}, copies ${text.value(entry.transfer_s, "s")}, idle ${text.value(entry.idle_s, "s")}`,
        );
      parts.push(...R.details(entry));
      return parts.join(" · ");
    };
    const tell = entry => {
      said.textContent = entry
        ? about(entry)
        : `${text.counted(entries.length, "entry", "entries")} over ${text.value(whole[1] - whole[0], "s")}; drag to look closer`;
    };
    const draw = () => {
      const width = Math.max(120, canvas.parentElement?.clientWidth ?? 600),
        height = HEAD + lanes.length * ROW,
        scale = devicePixelRatio || 1,
        ctx = canvas.getContext("2d"),
        x = at => ((at - from) / (to - from)) * width;
      canvas.width = width * scale;
      canvas.height = height * scale;
      canvas.style.height = `${height}px`;
      ctx.scale(scale, scale);
      ctx.font = `11px ${color("--sans")}`;
      ctx.textBaseline = "middle";
      const marks = round(from, to, Math.max(2, Math.floor(width / 120)));
      ctx.fillStyle = color("--soft");
      text.axis(marks, "s").forEach((words, at) => ctx.fillText(words, x(marks[at]) + 3, HEAD / 2));
      ctx.fillStyle = color("--line2");
      marks.forEach(at => ctx.fillRect(x(at), 0, 1, height));
      boxes = [];
      lanes.forEach((lane, row) => {
        const top = HEAD + row * ROW + 2;
        let right = -1;
        for (const entry of lane.entries) {
          if (entry.end_s < from || entry.start_s > to) continue;
          const left = Math.max(0, x(entry.start_s)),
            end = Math.min(width, Math.max(left + 1, x(entry.end_s)));
          if (end <= right && entry !== chosen) continue; // nothing of it would be seen
          right = Math.max(right, Math.floor(end));
          ctx.fillStyle = color(`--l${rank.get(entry.operation) ?? 4}`);
          ctx.globalAlpha = entry === chosen ? 1 : 0.82;
          ctx.fillRect(left, top, Math.max(1, end - left - 0.5), ROW - 4);
          ctx.globalAlpha = 1;
          if (entry === chosen) {
            ctx.strokeStyle = color("--ink");
            ctx.lineWidth = 2;
            ctx.strokeRect(left + 1, top + 1, Math.max(2, end - left - 2), ROW - 6);
          }
          if (end - left > 34) {
            ctx.fillStyle = color("--panel");
            ctx.save();
            ctx.beginPath();
            ctx.rect(left, top, end - left - 4, ROW);
            ctx.clip();
            ctx.fillText(entry.operation, left + 4, top + (ROW - 4) / 2);
            ctx.restore();
          }
          boxes.push([left, end, top, entry]);
        }
      });
    };
    const show = (a, b) => {
      const width = Math.min(Math.max(b - a, 1e-8), whole[1] - whole[0]);
      from = Math.max(whole[0], Math.min(a, whole[1] - width));
      to = from + width;
      draw();
    };
    const zoom = factor => {
      const middle = chosen ? (chosen.start_s + chosen.end_s) / 2 : (from + to) / 2,
        half = ((to - from) * factor) / 2;
      show(middle - half, middle + half);
    };
    const choose = entry => {
      chosen = entry;
      if (entry && (entry.end_s < from || entry.start_s > to)) {
        const half = (to - from) / 2;
        show(entry.start_s - half, entry.start_s + half);
      } else draw();
      tell(entry);
    };
    const step = way => {
      const at = chosen ? ordered.indexOf(chosen) + way : way > 0 ? 0 : ordered.length - 1;
      choose(ordered[Math.max(0, Math.min(ordered.length - 1, at))]);
    };
    const entryAt = event => {
      const box = canvas.getBoundingClientRect(),
        [x, y] = [event.clientX - box.left, event.clientY - box.top];
      return boxes.findLast(([left, end, top]) => x >= left && x <= end + 1 && y >= top && y <= top + ROW)?.[3] ?? null;
    };
    const moment = event => {
      const box = canvas.getBoundingClientRect();
      return from + ((event.clientX - box.left) / box.width) * (to - from);
    };
    let pressed = null;
    canvas.addEventListener("pointerdown", event => {
      pressed = [moment(event), event.clientX];
    });
    canvas.addEventListener("pointermove", event => pressed || tell(entryAt(event) ?? chosen));
    canvas.addEventListener("pointerup", event => {
      const [start, x] = pressed ?? [0, event.clientX];
      pressed = null;
      if (Math.abs(event.clientX - x) < 5) choose(entryAt(event));
      else show(...[start, moment(event)].sort((a, b) => a - b));
    });
    canvas.addEventListener("pointerleave", () => {
      pressed = null;
      tell(chosen);
    });
    const button = (label, name, act) => h("button", {type: "button", class: "copy", "aria-label": name, onclick: act}, label);
    const chart = h(
      "div",
      {
        class: "lanechart",
        tabindex: "0",
        role: "application",
        "aria-label":
          `${title} of ${text.counted(entries.length, "entry", "entries")} in ${text.counted(lanes.length, "lane")}. ` +
          "Arrow keys go from entry to entry, plus and minus zoom, Escape shows all.",
        onkeydown: event => {
          const act = {
            ArrowRight: () => step(1),
            ArrowLeft: () => step(-1),
            "+": () => zoom(0.5),
            "-": () => zoom(2),
            Escape: () => (choose(null), show(...whole)),
          }[event.key];
          if (!act) return;
          event.preventDefault();
          act();
        },
      },
      labels,
      h("div", {class: "canvas"}, canvas),
    );
    tell(null);
    const node = h(
      "section",
      null,
      h("h2", null, title),
      h(
        "div",
        {class: "actions"},
        button("+", "Zoom in", () => zoom(0.5)),
        button("−", "Zoom out", () => zoom(2)),
        button("←", "Earlier", () => show(from - (to - from) / 2, to - (to - from) / 2)),
        button("→", "Later", () => show(from + (to - from) / 2, to + (to - from) / 2)),
        button("all", "Show all", () => show(...whole)),
      ),
      chart,
      said,
    );
    return {node, draw, lanes, view: () => [from, to]};
  };
})(regress);
