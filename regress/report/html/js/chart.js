// The history of one or several series as a chart: uPlot draws the lines, painting.js what stands beside them, and plugins.js
// follows the pointer.
(R => {
  const {text} = R;
  const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [4, 4], [1, 3], [10, 4], [3, 2, 1, 2]];

  const BINARY = Array.from({length: 60}, (_, k) => 2 ** (k - 8));

  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Values of the lines over the commits that any of their places has. A line without a value there has null,
  // a gap; if nothing was measured in its place, it has undefined, which leaves no gap.
  const frameOf = (shard, lines, byDate) => {
    const global = shard.commits.map(sha => R.commitAt.get(sha));
    const measured = new Map();
    for (const line of shard.lines) {
      if (!measured.has(line.place)) measured.set(line.place, new Set());
      for (const at of [...line.at, ...line.failures.map(failure => failure[0])])
        if (global[at] !== undefined) measured.get(line.place).add(global[at]);
    }
    const commits = [...new Set(lines.flatMap(line => [...measured.get(line.place)]))].sort((a, b) => a - b);
    const date = at => R.index.commits[at].date;
    if (byDate) commits.sort((a, b) => date(a) - date(b) || a - b);
    const position = new Map(commits.map((commit, index) => [commit, index]));
    const curveOf = line => {
      const index = at => position.get(global[at]);
      const column = values => {
        const filled = commits.map(commit => (measured.get(line.place).has(commit) ? null : undefined));
        line.at.forEach((at, k) => {
          if (index(at) !== undefined) filled[index(at)] = values[k];
        });
        return filled;
      };
      const rounds = new Map(line.at.map((at, k) => [index(at), k]));
      return {
        line,
        index,
        y: column(line.values),
        low: column(line.lows),
        high: column(line.highs),
        read: line.read.length && lines.length <= 3 ? column(line.read) : null,
        nth: at => rounds.get(at),
      };
    };
    return {
      commits,
      position,
      xs: byDate ? commits.map(date) : commits.map((_, index) => index),
      lines: lines.map(curveOf),
      byDate,
    };
  };
  // What each line is divided by, where the chart is relative.
  const reference = (frame, curve, relative, pin) => {
    if (!relative) return 1;
    const wanted =
      relative === "pin" && pin !== undefined ? pin : relative === "tag" ? R.index.reference : frame.commits[0];
    let at = frame.position.get(wanted) ?? frame.commits.findLastIndex(commit => commit <= wanted);
    while (at >= 0 && typeof curve.y[at] !== "number") at -= 1;
    return (at >= 0 ? curve.y[at] : curve.y.find(value => typeof value === "number")) || 1;
  };
  const range = (values, log, least, levels = []) => {
    if (!values.length) return [0, 1];
    // A value far outside of the rest would flatten it: it is marked at the edge instead, see painting.js.
    const ordered = Float64Array.from(values).sort(),
      at = share => ordered[Math.round(share * (ordered.length - 1))];
    const reach = Math.max(2 * (at(0.98) - at(0.02)), Math.abs(at(0.5)) * least);
    // A level is always inside, however few values it has.
    let low = Math.min(...levels, Math.max(ordered[0], at(0.02) - reach)),
      high = Math.max(...levels, Math.min(ordered.at(-1), at(0.98) + reach));
    if (log && low > 0) {
      const pad = Math.max((high / low) ** 0.08, 1 + least / 2);
      return [low / pad, high * pad];
    }
    const span = Math.max(high - low, (Math.abs(high + low) / 2) * least) || 1,
      middle = (high + low) / 2;
    [low, high] = [Math.min(low, middle - span / 2), Math.max(high, middle + span / 2)];
    const bottom = low - 0.1 * (high - low);
    return [low >= 0 && bottom < 0 ? 0 : bottom, high + 0.16 * (high - low)];
  };

  // Of many lines, those that moved stand out, in the colour of their last change.
  const crowd = line => {
    const last = line.changes.findLast(change => change.large && change.state !== "recovered");
    return color(last ? `--${R.toneOf(R.kindOf(last))}` : "--crowd");
  };

  // options: {node, shard, lines, labels, colors, height, byDate, log, relative, pins, zoom, small, sync, onpin, onzoom}
  R.chart = options => {
    const {node, shard, lines, labels, small} = options;
    const frame = frameOf(shard, lines, options.byDate),
      unit = lines[0].unit,
      many = lines.length > 8;
    const scales = frame.lines.map(curve => reference(frame, curve, options.relative, options.pins?.[0]));
    const over = (column, k) => column.map(value => (typeof value === "number" ? value / scales[k] : value));
    const data = [frame.xs],
      series = [{}],
      bands = [];
    frame.lines.forEach((curve, k) => {
      Object.assign(curve, {
        scale: scales[k],
        shown: over(curve.y, k),
        low: over(curve.low, k),
        high: over(curve.high, k),
        color: many ? (options.colors ? R.lineColor(k, lines.length) : crowd(curve.line)) : color(`--l${k % 8}`),
      });
      const at = data.length;
      data.push(curve.low, curve.high, curve.shown);
      // The ends of the intervals bound a band and are not drawn themselves; bands of many lines would hide each other.
      const quiet = {show: lines.length <= 3, width: 0, points: {show: false}, stroke: "transparent"};
      series.push(
        {...quiet},
        {...quiet},
        {
          label: labels[k],
          stroke: lines.length > 1 ? curve.color : `${curve.color}88`,
          width: many && curve.color === color("--crowd") ? 1 : 1.5,
          dash: many
            ? []
            : DASHES[Math.floor(k / 8) % DASHES.length].length
              ? DASHES[Math.floor(k / 8)]
              : DASHES[k % 8],
          points: {show: frame.xs.length <= 400 && !many, size: small ? 3 : 4.5, fill: curve.color, stroke: curve.color},
        },
      );
      if (lines.length <= 3) bands.push({series: [at + 1, at], fill: `${curve.color}26`});
      if (curve.read) {
        data.push(over(curve.read, k));
        series.push({paths: () => null, points: {show: true, size: 3, fill: color("--soft"), stroke: color("--soft")}});
      }
    });
    const positive = frame.lines.every(curve => curve.shown.every(value => typeof value !== "number" || value > 0));
    const log = options.log && positive,
      least = Math.max(lines[0].threshold, 0.02);
    const visible = (low, high) =>
      frame.lines.flatMap(curve =>
        curve.shown.filter((value, at) => typeof value === "number" && frame.xs[at] >= low && frame.xs[at] <= high),
      );
    const levels = (low, high) =>
      frame.lines.flatMap(curve =>
        curve.line.levels
          .filter(({first, last}) => frame.xs[curve.index(first)] <= high && frame.xs[curve.index(last)] >= low)
          .map(level => level.value / curve.scale),
      );
    const format = value => (options.relative ? text.change(value) : text.value(value, unit));
    const full = frame.byDate ? [frame.xs[0] - 43200, frame.xs.at(-1) + 43200] : [-0.5, frame.xs.length - 0.5];
    const zoom = () => {
      const ends = (options.zoom ?? [])
        .map(at => frame.position.get(at))
        .filter(at => at !== undefined)
        .map(at => frame.xs[at])
        .sort((a, b) => a - b);
      if (ends.length !== 2) return full;
      const pad = frame.byDate ? 43200 : 0.5;
      return [ends[0] - pad, ends[1] + pad];
    };
    const font = `12px ${color("--sans")}`,
      line = color("--line2"),
      soft = color("--soft");
    const axis = {stroke: soft, font, grid: {stroke: line, width: 1}, ticks: {show: false}};
    const commitLabel = at =>
      Number.isInteger(at) && frame.commits[at] !== undefined ? R.commitName(frame.commits[at]).slice(0, 12) : "";
    const binary = !options.relative && ["B", "byte", "bytes"].includes(unit);
    const chart = {
      width: Math.max(node.clientWidth, 260),
      height: options.height,
      padding: [small ? 8 : 26, small ? 14 : 36, small ? 8 : 0, 0],
      legend: {show: false},
      scales: {
        x: {time: frame.byDate, range: zoom},
        y: {
          distr: log ? 3 : 1,
          range: () => range(visible(...zoom()), log, least, levels(...zoom())),
        },
      },
      axes: [
        {
          ...axis,
          space: 90,
          size: small ? 4 : 34,
          grid: {show: false},
          show: !small,
          ...(frame.byDate ? {} : {values: (_, splits) => splits.map(commitLabel)}),
        },
        {
          ...axis,
          size: 78,
          ...(binary ? {incrs: BINARY} : {}),
          space: small ? 24 : 44,
          values: (_, splits) =>
            options.relative || log ? splits.map(split => (split === null ? "" : format(split))) : text.axis(splits, unit),
        },
      ],
      series,
      bands,
      cursor: {
        x: true,
        y: false,
        drag: {x: !small, y: false, setScale: false},
        points: {show: false},
        ...(options.sync ? {sync: {key: options.sync}} : {}),
      },
      plugins: R.plugins({...options, frame, format, color, font}),
    };
    const u = new uPlot(chart, data, node);
    const resized = new ResizeObserver(() => {
      if (node.clientWidth && Math.abs(node.clientWidth - u.width) > 1)
        u.setSize({width: node.clientWidth, height: options.height});
    });
    resized.observe(node);
    const show = at => {
      const first = frame.lines.find(curve => typeof curve.shown[at] === "number");
      u.setCursor({left: u.valToPos(frame.xs[at], "x"), top: first ? u.valToPos(first.shown[at], "y") : 10});
    };
    const step = way => {
      let at = u.cursor.idx ?? (way > 0 ? -1 : frame.xs.length);
      do at += way;
      while (at >= 0 && at < frame.xs.length && !frame.lines.some(curve => typeof curve.shown[at] === "number"));
      if (at >= 0 && at < frame.xs.length) show(at);
      return frame.commits[at];
    };
    const change = way => {
      const places = [...new Set(frame.lines.flatMap(curve => curve.line.changes.map(point => curve.index(point.first))))]
        .filter(at => at !== undefined)
        .sort((a, b) => a - b);
      const here = u.cursor.idx ?? (way > 0 ? -1 : Infinity);
      const next = way > 0 ? places.find(at => at > here) : places.findLast(at => at < here);
      if (next !== undefined) show(next);
      return next;
    };
    return {
      u,
      frame,
      format,
      step,
      change,
      current: () => frame.commits[u.cursor.idx],
      destroy: () => {
        resized.disconnect();
        u.destroy();
      },
    };
  };
  // The colour of a line among this many: of a palette, or around the circle of hues.
  R.lineColor = (k, of) =>
    of > 8
      ? `hsl(${((k * 137.5) % 360).toFixed(0)} 60% ${getComputedStyle(document.documentElement).colorScheme === "dark" ? 65 : 40}%)`
      : color(`--l${k % 8}`);
  R.color = color;
})(regress);
