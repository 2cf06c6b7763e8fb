// Begins: draws what the page was made with, and any export that is opened or dropped.
(R => {
  const {h} = R;
  const main = document.getElementById("main"),
    drop = document.getElementById("drop");
  let charts = [];

  const nodesOf = data => {
    const profile = data.document,
      parts = R.profileSections,
      tables = R.profileTables,
      operations = [...profile.operations].sort((a, b) => b.self_s - a.self_s);
    charts = [R.memoryChart(profile.entries), R.timelineChart(profile.entries, operations)].filter(Boolean);
    R.live = {charts, data};
    return [
      h("h1", null, parts.headline(data)),
      parts.lede(profile),
      !data.comparisons.length && parts.warnings(profile),
      parts.totals(profile),
      tables.comparison(data),
      parts.bottlenecks(profile),
      operations.length > 0 &&
        h("div", {class: "figures"}, R.bars.shares(operations), R.bars.means(operations), R.bars.breakdown(operations)),
      charts.map(chart => chart.node),
      operations.length > 0 && tables.operations({...profile, operations}),
      tables.entries(profile),
    ];
  };
  const showCases = data => {
    charts = [];
    R.live = {charts, data};
    main.replaceChildren(...R.profiledCases(data).flat(Infinity).filter(Boolean));
    main.dataset.page = "profile";
  };
  const draw = () => charts.forEach(chart => chart.draw());
  const show = data => {
    main.replaceChildren(...nodesOf(data).flat(Infinity).filter(Boolean));
    draw();
    main.dataset.page = "profile";
    document.title = `${data.document.program.split("/").at(-1) || "profile"} · profile · regress`;
  };
  const refuse = (name, error) => {
    main.querySelector(".banner.bad")?.remove();
    main.prepend(
      h(
        "p",
        {class: "banner bad", role: "alert"},
        `${name} cannot be shown: ${error.message}. An export is what GPUProfiler.export_json writes.`,
      ),
    );
    scrollTo(0, 0);
  };
  const take = async file => {
    try {
      show({document: R.readExport(await file.text()), plan: "", comparisons: [], warnings: []});
      R.say(`${file.name} is shown`);
      scrollTo(0, 0);
    } catch (error) {
      refuse(file.name, error);
    }
  };

  document.getElementById("file").addEventListener("change", event => {
    const [file] = event.target.files;
    if (file) take(file);
    event.target.value = "";
  });
  const carries = event => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", event => {
    if (!carries(event)) return;
    event.preventDefault();
    drop.hidden = false;
  });
  addEventListener("dragleave", event => {
    if (!event.relatedTarget) drop.hidden = true;
  });
  addEventListener("drop", event => {
    if (!carries(event)) return;
    event.preventDefault();
    drop.hidden = true;
    const [file] = event.dataTransfer.files;
    if (file) take(file);
  });
  R.redrawn(draw);

  R.begin = () => {
    R.beginTheme();
    if (!R.profile.document) {
      showCases(R.profile);
      return;
    }
    try {
      R.checkExport(R.profile.document);
      show(R.profile);
    } catch (error) {
      console.error(error);
      main.replaceChildren(h("h1", null, "This export cannot be shown"));
      refuse("It", error);
    }
  };
})(regress);
