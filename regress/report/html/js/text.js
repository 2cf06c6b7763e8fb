// Numbers and times as text, as the command line writes them: a scale for each value, three significant digits, "-" if missing.
(R => {
  const TIMES = [
    ["s", 1],
    ["ms", 1e-3],
    ["us", 1e-6],
    ["ns", 1e-9],
  ];
  const SIZES = [
    ["TiB", 2 ** 40],
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
    ["B", 1],
  ];
  const ENERGIES = [
    ["kJ", 1e3],
    ["J", 1],
    ["mJ", 1e-3],
    ["uJ", 1e-6],
  ];
  const prefixed = unit => [
    [`T${unit}`, 1e12],
    [`G${unit}`, 1e9],
    [`M${unit}`, 1e6],
    [`k${unit}`, 1e3],
    [unit, 1],
  ];
  const COUNTS = [["", 1]];
  const SCALES = {
    s: TIMES,
    second: TIMES,
    seconds: TIMES,
    B: SIZES,
    byte: SIZES,
    bytes: SIZES,
    J: ENERGIES,
    "B/s": prefixed("B/s"),
    "FLOP/s": prefixed("FLOP/s"),
    Hz: prefixed("Hz"),
    count: COUNTS,
    unit: COUNTS,
  };
  const MINUTE = 60,
    HOUR = 3600,
    DAY = 86400,
    WEEK = 604800,
    MONTH = 2629800,
    YEAR = 31557600;
  const MISSING = "-";
  const GROUPED = 999999.5,
    READ = 1e15;

  const exponent = value => {
    const [mantissa, power] = value.toExponential(2).split("e");
    const size = Math.abs(Number(power));
    return `${mantissa}e${power[0]}${size < 10 ? "0" : ""}${size}`;
  };
  const number = value => {
    if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-3 || size >= READ) return exponent(value);
    if (size >= GROUPED) return value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
    const digits = Math.max(0, 2 - Math.floor(Math.log10(Number(size.toExponential(2)))));
    return value.toFixed(digits);
  };
  const scaleOf = (values, unit) => {
    const scales = Object.hasOwn(SCALES, unit) ? SCALES[unit] : [[unit, 1]];
    const sizes = values.filter(value => value !== null && Number.isFinite(value) && value !== 0).map(Math.abs);
    if (!sizes.length) return scales === SIZES ? ["B", 1] : scales[0];
    const middle = Math.exp(sizes.reduce((sum, size) => sum + Math.log(size), 0) / sizes.length);
    return scales.find(([, factor]) => Number((middle / factor).toExponential(2)) >= 1) ?? scales[scales.length - 1];
  };
  const scaled = (value, [name, factor]) => {
    if (value === null || value === undefined) return MISSING;
    const size = value / factor;
    const whole = (name === "" || name === "B") && Number.isInteger(size) && Math.abs(size) < GROUPED;
    return `${whole ? size.toFixed(0) : number(size)} ${name}`.trimEnd();
  };
  const value = (amount, unit) => scaled(amount, scaleOf([amount ?? null], unit));
  // Values of an axis in one scale, with as many digits as tell neighbours apart.
  const axis = (values, unit) => {
    const present = values.filter(value => value !== null),
      [name, factor] = scaleOf([Math.max(...present.map(Math.abs))], unit);
    const step = (present.length > 1 && Math.abs(present[1] - present[0]) / factor) || 1;
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
    const exact =
      [digits, digits + 1, digits + 2].find(n => Math.abs(Number(step.toFixed(n)) - step) < step * 1e-6) ?? digits;
    return values.map(value => (value === null ? "" : `${(value / factor).toFixed(exact)} ${name}`.trimEnd()));
  };
  // The two ends of an interval, with as many digits as its width is worth.
  const span = (low, high, unit) => {
    const [name, factor] = scaleOf([high], unit),
      width = Math.abs(high - low) / factor || 1;
    const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(width))));
    return [low, high].map(end =>
      `${(end / factor).toFixed(name === "B" || name === "" ? 0 : digits)} ${name}`.trimEnd(),
    );
  };
  const signed = ratio => {
    const percent = 100 * (ratio - 1),
      size = Math.abs(percent),
      sign = percent < 0 ? "-" : "+";
    const text = sign + (size < 99.95 ? size.toFixed(1) : size < GROUPED ? size.toFixed(0) : number(size));
    return text === "+0.0" || text === "-0.0" ? "0.0" : text;
  };
  const change = ratio => {
    if (ratio === null || ratio === undefined || Number.isNaN(ratio)) return MISSING;
    return ratio >= 10 ? `x${number(ratio)}` : `${signed(ratio)} %`;
  };
  const interval = (low, high) => {
    if (low === null || high === null) return MISSING;
    return low >= 10 ? `x${number(low)} … x${number(high)}` : `${signed(low)} … ${signed(high)} %`;
  };
  const percent = share => {
    if (share === null || share === undefined) return MISSING;
    const size = 100 * share;
    if (size >= 99.5) return `${size.toFixed(0)} %`;
    return `${Number(size.toPrecision(size < 9.95 ? 2 : 3))} %`;
  };
  // A noise too small to matter is shown as a bound.
  const noise = share => (share !== null && share > 0 && share < 1e-4 ? "< 0.01 %" : percent(share));
  const ago = seconds => {
    const size = Math.abs(seconds);
    let text;
    if (size < 59.5) text = `${size.toFixed(0)} s`;
    else if (size < 59.5 * MINUTE) text = `${(size / MINUTE).toFixed(0)} min`;
    else if (size < 47.5 * HOUR) text = `${(size / HOUR).toFixed(0)} h`;
    else {
      const [, unit, word] = [
        [2 * WEEK, DAY, "days"],
        [9 * WEEK, WEEK, "weeks"],
        [2 * YEAR, MONTH, "months"],
        [Infinity, YEAR, "years"],
      ].find(([limit]) => size < limit);
      text = `${(size / unit).toFixed(0)} ${word}`;
    }
    return seconds >= 0 ? `${text} ago` : `in ${text}`;
  };
  const two = n => String(n).padStart(2, "0");
  const date = seconds => {
    const at = new Date(seconds * 1000);
    return Number.isNaN(at.getTime()) ? MISSING : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  };
  const moment = seconds => {
    const at = new Date(seconds * 1000);
    return Number.isNaN(at.getTime()) ? MISSING : `${date(seconds)} ${two(at.getHours())}:${two(at.getMinutes())}`;
  };
  const counted = (n, noun, many = `${noun}s`) => `${n} ${n === 1 ? noun : many}`;
  const listed = words => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
  // A word, quoted for a shell if it has to be.
  const quoted = word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

  R.text = {
    number,
    value,
    axis,
    span,
    scaleOf,
    scaled,
    change,
    interval,
    percent,
    noise,
    ago,
    date,
    moment,
    counted,
    listed,
    quoted,
    MISSING,
  };
})(regress);
