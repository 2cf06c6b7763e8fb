// The namespace, and the door that data comes in by: every data script calls `regress.take(KIND, NAME, DATA)`.
"use strict";
var regress = (() => {
  const shards = new Map();
  const waiting = new Map();
  const R = {index: null, values: null, shards, waiting};
  R.take = (kind, name, data) => {
    if (kind === "index") R.index = data;
    else if (kind === "values") R.values = data;
    else if (kind === "profile") R.profile = data;
    else if (kind === "explained") R.explained = data;
    else shards.set(name, data);
  };
  return R;
})();
