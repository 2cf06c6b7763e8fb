// The data: shards are loaded by script tag when they are asked for, and commits are looked up by name.
(R => {
  const named = (names, values) => Object.fromEntries(names.map((name, at) => [name, values[at]]));
  const levelled = holder => ({...holder, levels: holder.levels.map(level => named(R.index.fields.level, level))});
  // A line as it was before it was packed into whole numbers (regress.pages, Line).
  const unpacked = (line, columns) => {
    const {per, values, lows, highs, rounds} = line,
      at = columns[line.at],
      roundsOf = k => (typeof rounds === "number" ? rounds : rounds[k]);
    return {
      ...levelled(line),
      at,
      failures: Object.entries(line.failures)
        .flatMap(([kind, commits]) => commits.map(commit => [commit, kind]))
        .sort(([a], [b]) => a - b),
      values: values.map(value => value / per),
      read: (line.read ?? []).map(value => value / per),
      lows: lows.map((below, k) => (values[k] - below) / per),
      highs: highs.map((above, k) => (values[k] + above) / per),
      rounds: at.map((_, k) => {
        const offsets = roundsOf(k);
        return typeof offsets === "number" ? offsets : offsets.map(offset => (values[k] + offset) / per);
      }),
    };
  };
  const opened = name => {
    const shard = R.shards.get(name);
    if (!shard.opened)
      Object.assign(shard, {opened: true, lines: shard.lines.map(line => unpacked(line, shard.columns))});
    return shard;
  };
  // Loads a data script once, and gives what `open` makes of it.
  const loaded = (file, there, open) => {
    if (there()) return Promise.resolve(open());
    if (!R.waiting.has(file)) {
      const loading = new Promise((resolve, reject) => {
        const script = R.h("script", {src: `data/${file}`});
        script.onload = () => (there() ? resolve(open()) : reject(new Error("it is of another report")));
        script.onerror = () => reject(new Error(`data/${decodeURIComponent(file)} is not there`));
        document.head.append(script);
      });
      R.waiting.set(file, loading);
      loading.catch(() => R.waiting.delete(file));
    }
    return R.waiting.get(file);
  };
  R.shard = entry =>
    loaded(
      `b/${encodeURIComponent(entry.file)}`,
      () => R.shards.has(entry.name),
      () => opened(entry.name),
    );
  // What was measured of a row at a commit, or last before it: `{value, at}`.
  const valueAt = (row, commit) => {
    const [column, per, values] = R.values.rows[row.number],
      at = R.values.columns[column],
      k = at.findLastIndex(measured => measured <= commit);
    return k < 0 ? null : {value: values[k] / per, at: at[k]};
  };
  R.measured = () =>
    loaded(
      "values.js",
      () => R.values,
      () => valueAt,
    );
  // Called once, when the index is loaded.
  R.prepare = () => {
    const {index} = R;
    R.commitAt = new Map(index.commits.map((commit, at) => [commit.sha, at]));
    R.entryOf = new Map(index.entries.map((entry, at) => [entry.name, at]));
    R.placeOf = new Map(index.places.map((place, at) => [place.id, at]));
    index.rows = index.rows.map(values => levelled(named(index.fields.row, values)));
    index.events = index.events.map(values => named(index.fields.event, values));
    for (const event of index.events) {
      const {name} = index.entries[event.benchmark];
      event.suspects = event.suspects.map(at => index.suspects[at]);
      event.case = name + (event.params && `(${event.params})`);
      event.id = [event.case, event.metric, event.moved, index.commits[event.first].sha].join(" ");
    }
    index.broken = index.broken.map(values => named(index.fields.broken, values));
    index.rows.forEach((row, number) => {
      row.number = number;
      row.name = index.entries[row.benchmark].name;
      row.text = `${row.name} ${row.params} ${R.metric(row.metric)} ${row.metric}`.toLowerCase();
    });
  };
  // The place that an address names. In addresses of earlier reports the device is a card and not its model: then the machine
  // and the environment tell which place it is, if only one has both.
  R.placeNamed = id => {
    if (R.placeOf.has(id)) return id;
    const [machine, , environment] = id.split("|"),
      alike = R.index.places.filter(place => place.machine === machine && place.environment === environment);
    return alike.length === 1 ? alike[0].id : "";
  };
  R.short = sha => sha.slice(0, 8);
  // A commit as the reader may write it: a tag, a sha or the beginning of one, `first`, `last`.
  R.findCommit = text => {
    const wanted = text.trim().split(/\s/)[0].toLowerCase(),
      {commits} = R.index;
    if (!wanted) return -1;
    if (wanted === "first") return 0;
    if (wanted === "last") return commits.length - 1;
    const tagged =
      R.index.releases.find(release => release.name.toLowerCase() === wanted)?.at ??
      commits.findIndex(commit => commit.tags.some(tag => tag.toLowerCase() === wanted));
    return tagged >= 0
      ? tagged
      : wanted.length < 4
        ? -1
        : commits.findIndex(commit => commit.sha.startsWith(wanted.slice(0, 12)));
  };
  // What a commit is called: its tag, else its sha.
  R.commitName = at => R.index.commits[at].tags[0] ?? R.short(R.index.commits[at].sha);
  R.referenceName = () => R.index.release || R.commitName(R.index.reference);
  // Where the reference of "since" was measured, in case that is not the release itself.
  R.referenceNote = () => {
    const {release, releases} = R.index,
      reference = releases.find(candidate => candidate.name === release);
    if (!reference || (reference.measured && reference.tagged)) return "";
    const where = `${R.short(R.index.commits[reference.at].sha)}, the newest measured commit`;
    return reference.tagged ? ` (${where} at or before it)` : ` (${where} before its branch left ${R.index.branch})`;
  };
  R.commitLink = commit => {
    const sha = R.h("span", {class: "mono"}, R.short(commit.sha));
    return R.index.commit_url
      ? R.h("a", {href: R.index.commit_url + commit.sha, rel: "noreferrer", target: "_blank"}, sha)
      : sha;
  };
})(regress);
