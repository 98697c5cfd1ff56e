// What happens on the page: sliders move the maps, and the pointer asks for values.
"use strict";

const STANDARD_DEVIATIONS = 2; // half an interval

function escaped(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element.innerHTML;
}

function short(number) {
  return String(Number(number.toPrecision(4)));
}

class Explorer {
  /** `page` has the numbers of the page, `parts` the Bokeh models that show them. */
  constructor(page, parts) {
    Object.assign(this, { page, parts });
    const Kind = page.values.basis ? LinearValues : ListedValues;
    this.values = new Kind(page.values, page.whole);
    this.episodes = page.episodes.map((path) => decoded(path, Float32Array));
    this.data = decoded(page.data, Float32Array);
    this.axes = this.size > 1 ? [0, 1] : [0];
    this.point = [...page.point];
    this.restore();
    this.fit();
    this.refresh();
  }

  get size() {
    return this.page.names.length;
  }

  // Maps ------------------------------------------------------------------------------------------

  /** Something was chosen: axes, the place of a slider, or what lies on top. */
  choose() {
    const { x, y, sliders } = this.parts;
    if (x) {
      const before = this.axes;
      let [i, j] = [x.value, y.value].map(Number);
      if (i === j) [i, j] = i === before[0] ? [before[1], j] : [i, before[0]];
      this.axes = [i, j];
      [x.value, y.value] = this.axes.map(String);
      if (String(before) !== String(this.axes)) this.fit();
    }
    sliders.forEach((slider, d) => {
      if (!this.axes.includes(d)) this.point[d] = slider.value;
    });
    this.refresh();
  }

  /** Let the maps show the whole range of their dimensions. */
  fit() {
    const { ranges, sliders, figures } = this.parts, { low, high, names } = this.page;
    if (this.size === 1) return;
    this.axes.forEach((d, k) => {
      const range = ranges[k], edge = this.page.whole ? 0.5 : 0;
      const ends = [low[d] - edge, high[d] + edge];
      const flip = k === 1 && this.page.grid;
      range.setv({ bounds: null }, { silent: true });
      const [start, end] = flip ? [ends[1], ends[0]] : ends;
      range.setv({ start, end, reset_start: start, reset_end: end });
      range.setv({ bounds: ends });
      for (const figure of figures) (k ? figure.left : figure.below)[0].axis_label = names[d];
    });
    sliders.forEach((slider, d) => { slider.visible = !this.axes.includes(d); });
  }

  /** Draw once for all changes since the last frame. */
  refresh() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      if (this.size > 1) this.drawMaps();
      this.drawLayers();
      this.show(this.point);
      this.remember();
    });
  }

  drawMaps() {
    const { cells, ranges } = this.parts, [i, j] = this.axes;
    const [x, y] = [this.pixels(i, ranges[0]), this.pixels(j, ranges[1])];
    const size = x.count * y.count;
    const images = { value: new Float64Array(size), std: new Float64Array(size),
      action: new Float64Array(size), unknown: new Float64Array(size) };
    const u = [...this.point];
    for (let row = 0, k = 0; row < y.count; row++) {
      u[j] = y.first + row * y.step;
      for (let column = 0; column < x.count; column++, k++) {
        u[i] = x.first + column * x.step;
        const { action, mean, std, unknown } = this.values.at(u, false);
        images.value[k] = mean[0];
        images.std[k] = std ? std[0] : 0;
        images.action[k] = action;
        images.unknown[k] = unknown ? 1 : 0;
      }
    }
    this.images = images;
    this.scale(images);
    const Image = cells.data.value[0].constructor;
    const columns = { x: [x.first - x.step / 2], y: [y.first - y.step / 2],
      width: [x.count * x.step], height: [y.count * y.step] };
    for (const [name, image] of Object.entries(images))
      columns[name] = [new Image(image, [y.count, x.count])];
    cells.data = columns;
  }

  /** The places along one dimension at which a map is evaluated. */
  pixels(d, range) {
    const { whole, low, high, resolution } = this.page;
    if (whole) return { first: low[d], step: 1, count: high[d] - low[d] + 1 };
    const step = (range.end - range.start) / resolution;
    return { first: range.start + step / 2, step, count: resolution };
  }

  /** Colours span the values about which the data say something. */
  scale({ value, std, unknown }) {
    const known = unknown.includes(0);
    for (const [numbers, mapper] of [[value, this.parts.colours.value],
      [std, this.parts.colours.std]]) {
      if (!mapper) continue;
      let low = Infinity, high = -Infinity;
      for (let k = 0; k < numbers.length; k++) {
        if (known && unknown[k]) continue;
        low = Math.min(low, numbers[k]);
        high = Math.max(high, numbers[k]);
      }
      if (high - low < 1e-9 * Math.abs(high)) high = low + 1e-9 * Math.max(Math.abs(low), 1);
      mapper.setv({ low, high });
    }
  }

  drawLayers() {
    const { paths, ends, seen, layers, layered } = this.parts, [i, j] = this.axes;
    const column = (table, d) => table.filter((_, k) => k % this.size === d);
    if (j === undefined) return;
    for (const [place, shown] of layered.entries())
      for (const renderer of shown) renderer.visible = layers.active.includes(place);
    const xs = this.episodes.map((path) => column(path, i));
    const ys = this.episodes.map((path) => column(path, j));
    paths.data = { xs, ys };
    ends.data = { x: xs.map((path) => path[path.length - 1]),
      y: ys.map((path) => path[path.length - 1]) };
    seen.data = { x: column(this.data, i), y: column(this.data, j) };
  }

  // The point -------------------------------------------------------------------------------------

  /** The pointer is at x, y of a map or of a line. */
  ask(x, y) {
    const { low, high } = this.page, u = [...this.point];
    [x, y].slice(0, this.axes.length).forEach((value, k) => {
      const d = this.axes[k];
      u[d] = within(value, low[d], high[d]);
    });
    this.show(u);
  }

  show(coordinates) {
    const { here, actions, says } = this.parts, { names } = this.page;
    const u = this.values.snapped(coordinates);
    const answer = this.values.at(u);
    this.shown = { coordinates: u, ...answer };
    const [i, j] = this.axes;
    here.data = { x: [u[i]], y: [j === undefined ? answer.mean[answer.action] : u[j]] };
    const reach = (answer.std ?? answer.mean.map(() => 0)).map((s) => STANDARD_DEVIATIONS * s);
    const possible = (value) => within(value, ...this.values.limits);
    actions.data = { ...actions.data, mean: answer.mean,
      low: answer.mean.map((m, a) => possible(m - reach[a])),
      high: answer.mean.map((m, a) => possible(m + reach[a])) };
    const place = u.map((value, d) => `${escaped(names[d])} = ${short(value)}`).join(", ");
    const rows = this.page.actions.map((name, a) => this.row(name, a, answer));
    const doubt = answer.unknown ? " <em>The data say little here.</em>" : "";
    const columns = `<th>action</th><th>value</th>${answer.std ? "<th>std</th>" : ""}`;
    says.text = `<p>${place}.${doubt}</p><table><tr>${columns}</tr>${rows.join("")}</table>`;
  }

  row(name, a, { action, mean, std }) {
    const numbers = std ? [mean[a], std[a]] : [mean[a]];
    const cells = numbers.map((number) => `<td class="number">${short(number)}</td>`).join("");
    const colour = `<span class="swatch" style="background:${this.page.colours[a]}"></span>`;
    const mark = a === action ? " class=\"chosen\"" : "";
    return `<tr${mark}><td>${colour} ${escaped(name)}</td>${cells}</tr>`;
  }

  // A page that is written again while an agent learns keeps what was chosen ---------------------

  get key() {
    return `rblspi explore ${location.pathname}`;
  }

  remember() {
    const { layers } = this.parts, { axes, point } = this;
    try {
      sessionStorage.setItem(this.key, JSON.stringify({ axes, point, layers: layers?.active }));
    } catch { /* a browser that keeps nothing for files */ }
  }

  restore() {
    const { x, y, sliders, layers } = this.parts;
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(this.key));
    } catch { /* as above */ }
    if (!kept || kept.point.length !== this.size) return;
    if (x) {
      this.axes = kept.axes;
      [x.value, y.value] = kept.axes.map(String);
    }
    sliders.forEach((slider, d) => { slider.value = kept.point[d]; });
    this.point = kept.point;
    if (layers && kept.layers) layers.active = kept.layers;
  }
}
