// Small drawings in a row: the history in a line, a change with its interval, and the commits of a report as bars.
(R => {
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

  R.spark = (row, width = 150, height = 26, marks = []) => {
    const {spark} = row,
      steps = Math.max(spark.length - 1, 1),
      first = row.levels[0]?.first ?? 0,
      commits = Math.max(R.index.commits.length - 1 - first, 1);
    const long = ((row.at - first) / commits) * (width - 4),
      x = at => 2 + (at / steps) * long,
      y = letter => height - 3 - (LETTERS.indexOf(letter) / (LETTERS.length - 1)) * (height - 6);
    let path = "",
      pen = false,
      alone = "";
    [...spark].forEach((letter, at) => {
      if (letter === "-") return;
      if (letter === " ") pen = false;
      else {
        const point = `${x(at).toFixed(1)} ${y(letter).toFixed(1)}`;
        path += `${pen ? "L" : "M"}${point}`;
        if (!pen && !/^-*[A-Za-z]/.test(spark.slice(at + 1))) alone += `M${point}h.01`;
        pen = true;
      }
    });
    const tone = R.tone(row.status);
    const mark = at =>
      R.svg("line", {
        x1: 2 + ((at - first) / commits) * (width - 4),
        x2: 2 + ((at - first) / commits) * (width - 4),
        y1: 0,
        y2: height,
        class: "mark",
      });
    return R.svg(
      "svg",
      {
        class: `spark ${tone}`,
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `history: ${row.status}`,
      },
      (row.changed === null ? marks : [...marks, row.changed]).filter(at => at >= first).map(mark),
      R.svg("path", {d: path}),
      alone && R.svg("path", {d: alone, class: "alone"}),
    );
  };

  // The smallest change that counts, in the direction of the event.
  R.countsFrom = ({ratio, threshold}) =>
    !threshold ? "any change" : ratio < 1 ? R.text.change(1 / (1 + threshold)) : `+${R.text.percent(threshold)}`;
  // The ratio with its interval against the threshold; the band is what does not count.
  R.whisker = event => {
    const {ratio, low, high, threshold} = event,
      width = 190,
      height = 30;
    if (ratio === null || low === null || high === null || !(low > 0)) return null;
    const reach = Math.max(Math.abs(Math.log(low)), Math.abs(Math.log(high)), 2 * Math.log1p(threshold)) * 1.15;
    const x = value => width / 2 + Math.max(-1, Math.min(1, Math.log(value) / reach)) * (width / 2 - 6);
    const edge = 1 + threshold,
      tone = R.toneOf(R.kindOf(event)),
      from = R.countsFrom(event);
    return R.svg(
      "svg",
      {
        class: `whisker ${tone}`,
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `95 % interval ${R.text.interval(low, high)}, counts from ${from}`,
      },
      R.svg("rect", {x: x(1 / edge), width: x(edge) - x(1 / edge), y: 3, height: 14}),
      R.svg("line", {x1: x(1), x2: x(1), y1: 1, y2: 19, class: "zero"}),
      R.svg("line", {x1: x(low), x2: Math.max(x(high), x(low) + 1), y1: 10, y2: 10, class: "arm"}),
      R.svg("circle", {cx: x(ratio), cy: 10, r: 4}),
      threshold > 0 && R.svg("text", {x: x(ratio < 1 ? 1 / edge : edge), y: 29, "text-anchor": "middle"}, from),
    );
  };

  // Each bar is a commit, or a few; tall ones changed something, each direction in its own colour.
  R.timeline = (events, broken) => {
    const {commits} = R.index,
      bars = Math.min(commits.length, 120),
      at = commit => Math.min(bars - 1, Math.floor((commit / commits.length) * bars));
    const seen = Array.from({length: bars}, () => ({worse: 0, moved: 0, better: 0, failed: 0}));
    for (const event of events)
      if (event.large && event.state !== "tentative") seen[at(event.first)][R.toneOf(R.kindOf(event))] += 1;
    for (const failure of broken) seen[at(failure.first)].failed += 1;
    const title = (counts, bar) => {
      const [from, to] = [bar, bar + 1].map(end => Math.ceil((end / bars) * commits.length)),
        commit = commits[from],
        last = commits[to - 1];
      const what = [
        counts.worse && `${counts.worse} regressed`,
        counts.moved && `${counts.moved} changed`,
        counts.better && `${counts.better} improved`,
        counts.failed && `${counts.failed} began to fail`,
      ]
        .filter(Boolean)
        .join(", ");
      const which =
        to - from > 1
          ? `${to - from} commits, ${R.short(commit.sha)} … ${R.short(last.sha)}\n${R.text.date(commit.date)} … ${R.text.date(last.date)}`
          : `${R.short(commit.sha)} ${commit.subject.slice(0, 80)}\n${R.text.date(commit.date)}`;
      return `${which}${what ? `: ${what}` : ""}`;
    };
    const TONES = ["worse", "moved", "better"],
      sum = counts => TONES.reduce((n, tone) => n + counts[tone], 0);
    const most = Math.max(1, ...seen.map(sum));
    const bar = (counts, index) => {
      const n = sum(counts),
        height = n ? 16 + (20 * n) / most : 8;
      const parts = TONES.filter(tone => counts[tone]).map(tone => R.h("b", {class: tone, style: `flex:${counts[tone]}`}));
      return R.h(
        "i",
        {
          class: n ? "parts" : counts.failed ? "failed" : "",
          style: `height:${height.toFixed(0)}px`,
          title: title(counts, index),
        },
        parts,
      );
    };
    const count = key => seen.reduce((sum, counts) => sum + counts[key], 0);
    return R.h(
      "div",
      {
        class: "timeline",
        role: "img",
        "aria-label": `${R.text.counted(commits.length, "commit")}: ${count("worse")} regressed, ${count("moved")} changed, ${count("better")} improved`,
      },
      seen.map(bar),
    );
  };
})(regress);
