// An export as it comes from a file: what it must have before any of it is drawn, and a message that says what is wrong.
(R => {
  const SCHEMA = "regress.profile/1";
  const text = value => typeof value === "string";
  const number = value => typeof value === "number" && Number.isFinite(value);
  const maybe = value => value === null || value === undefined || number(value);
  const list = value => Array.isArray(value);
  const object = value => typeof value === "object" && value !== null && !Array.isArray(value);

  const BREAKDOWN = {busy_s: maybe, transfer_s: maybe, idle_s: maybe, memory_bytes: maybe, peak_bytes: maybe};
  const PROFILE = {
    started_at: number,
    duration_s: number,
    program: text,
    machine: text,
    facts: object,
    entries_total: number,
    entries_kept: number,
    pending: number,
    lost: number,
    no_breakdown: text,
    operations: list,
    bottlenecks: list,
    entries: list,
  };
  const OPERATION = {
    operation: text,
    device: text,
    calls: number,
    share: number,
    total_s: number,
    self_s: number,
    mean_s: number,
    min_s: number,
    max_s: number,
    host_s: number,
    span_s: number,
    kernels: list,
    ...BREAKDOWN,
  };
  const ENTRY = {
    operation: text,
    start_s: number,
    end_s: number,
    duration_s: number,
    device: text,
    thread: text,
    depth: number,
    details: object,
    ...BREAKDOWN,
  };
  const BOTTLENECK = {operation: text, share: number, bound: text, evidence: text, advice: list};

  const check = (data, rules, where) => {
    if (!object(data)) throw new Error(`${where} is no object`);
    for (const [key, rule] of Object.entries(rules)) {
      const wrong = key in data ? "not what it should be" : "missing";
      if (!rule(data[key])) throw new Error(`${where}: "${key}" is ${wrong}`);
    }
  };
  R.checkExport = data => {
    if (!object(data)) throw new Error("it is no object");
    if (!text(data.schema) || !data.schema.startsWith("regress.profile/"))
      throw new Error(`it is not a profile: its "schema" is ${JSON.stringify(data.schema ?? null)}, not "${SCHEMA}"`);
    if (data.schema !== SCHEMA) throw new Error(`it is of another version, ${data.schema}; this page reads ${SCHEMA}`);
    check(data, PROFILE, "the profile");
    data.operations.forEach((operation, at) => check(operation, OPERATION, `operation ${at + 1}`));
    data.entries.forEach((entry, at) => check(entry, ENTRY, `entry ${at + 1}`));
    data.bottlenecks.forEach((bottleneck, at) => check(bottleneck, BOTTLENECK, `bottleneck ${at + 1}`));
    return data;
  };
  // What the program said of an entry, as words.
  R.details = entry => Object.entries(entry.details).map(([key, value]) => `${key}=${value}`);
  R.readExport = source => {
    let data;
    try {
      data = JSON.parse(source);
    } catch (error) {
      throw new Error(`it is not JSON: ${error.message}`);
    }
    return R.checkExport(data);
  };
})(regress);
