// What a policy says at any coordinates, computed from the numbers on the page.
"use strict";

Bokeh.logger.set_level("error"); // messages about nothing stay out of the console

/** Numbers that are written in base64, as an array of a type. */
function decoded(text, Type) {
  return new Type(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
}

function dot(one, other, start = 0) {
  let sum = 0;
  for (let i = 0; i < other.length; i++) sum += one[start + i] * other[i];
  return sum;
}

/** The length of T x, where the rows of the upper triangle T follow one another from `start` on. */
function lengthOfProduct(triangle, x, start) {
  const n = x.length;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    let entry = 0;
    for (let j = i; j < n; j++) entry += triangle[start++] * x[j];
    sum += entry * entry;
  }
  return Math.sqrt(sum);
}

function within(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** Features of coordinates u by the kind of the basis; docs/policy-json.md defines them. */
const FEATURES = {
  RBFGrid: ({ centres, widths }) => (u) => {
    let grid = [1];
    u.forEach((value, d) => {
      const near = centres[d].map((c) => Math.exp(-0.5 * ((value - c) / widths[d]) ** 2));
      grid = grid.flatMap((one) => near.map((other) => one * other));
    });
    grid.push(1);
    return grid;
  },
  Polynomial: ({ low, slope, products }) => (u) => {
    const out = [1, ...u.map((value, d) => (value - low[d]) * slope[d])];
    for (const [i, j] of products) out.push(out[i] * out[j]);
    return out;
  },
  Fourier: ({ order, low, slope }) => (u) => {
    let angles = [0];
    u.forEach((value, d) => {
      const step = Math.PI * within((value - low[d]) * slope[d], 0, 1);
      angles = angles.flatMap((angle) =>
        Array.from({ length: order[d] + 1 }, (_, c) => angle + c * step));
    });
    return angles.map(Math.cos);
  },
  TileCoding: ({ tiles, low, slope, active, displacements }) => {
    const size = tiles.reduce((product, count) => product * count, 1);
    return (u) => {
      const out = new Float64Array(size * displacements.length + 1);
      displacements.forEach((moved, tiling) => {
        let index = 0;
        u.forEach((value, d) => {
          const place = (value - low[d]) * slope[d] + moved[d];
          index = index * tiles[d] + Math.trunc(within(place, 0, tiles[d] - 1));
        });
        out[tiling * size + index] = active;
      });
      out[out.length - 1] = 1;
      return out;
    };
  },
  OneHot: ({ first, counts }) => (u) => {
    const out = new Float64Array(counts.reduce((sum, count) => sum + count, 0));
    let start = 0;
    u.forEach((value, d) => {
      const place = value - first[d];
      if (place >= 0 && place < counts[d]) out[start + Math.trunc(place)] = 1;
      start += counts[d];
    });
    return out;
  },
};

/** The values of all actions at u, by linear interpolation between the vertices of a grid. */
function interpolated({ vertices, low, slope }, weights, actions) {
  const n = weights.length / actions;
  return (u) => {
    let corners = [[0, 1]]; // the place of a vertex, and its share
    u.forEach((value, d) => {
      const along = within((value - low[d]) * slope[d], 0, vertices[d] - 1);
      const cell = Math.min(Math.trunc(along), vertices[d] - 2), share = along - cell;
      corners = corners.flatMap(([place, part]) => [
        [place * vertices[d] + cell, part * (1 - share)],
        [place * vertices[d] + cell + 1, part * share]]);
    });
    return Array.from({ length: actions }, (_, a) =>
      corners.reduce((sum, [place, part]) => sum + part * weights[a * n + place], 0));
  };
}

/** Action values that are linear in features; the agent may act by a plan on a grid of its own. */
class LinearValues {
  constructor(model, whole) {
    Object.assign(this, model);
    this.features = FEATURES[model.basis.kind](model.basis);
    this.weights = decoded(model.weights, Float64Array);
    this.acting = decoded(model.acting, Float64Array);
    this.plan = model.plan &&
      interpolated(model.plan.basis, decoded(model.plan.weights, Float64Array), model.actions);
    this.triangles = model.triangles && decoded(model.triangles, Float32Array);
    this.n = this.weights.length / model.actions;
    this.whole = whole;
  }

  snapped(u) {
    return this.whole ? u.map(Math.round) : u;
  }

  /** Means and standard deviations of all actions, or of the policy's alone, and its action. */
  at(u, all = true) {
    const x = this.features(u), { n, actions, pessimism } = this;
    const noise = (a) => lengthOfProduct(this.triangles, x, a * n * (n + 1) / 2);
    const every = Array.from({ length: actions }, (_, a) => a);
    const bound = (a) => dot(this.acting, x, a * n) - (pessimism ? pessimism * noise(a) : 0);
    const compared = this.plan ? this.plan(u) : every.map(bound);
    const action = compared.indexOf(Math.max(...compared));
    const chosen = all ? every : [action];
    const mean = chosen.map((a) => within(dot(this.weights, x, a * n), ...this.limits));
    if (!this.triangles) return { action, mean, std: null, unknown: false };
    const spread = chosen.map(noise);
    const prior = Math.min(Math.sqrt(dot(x, x)) * this.prior_std, this.most_std);
    const unknown = spread[all ? action : 0] > this.threshold * prior;
    return { action, mean, std: spread.map((s) => Math.hypot(s, this.basis_std)), unknown };
  }
}

/** Action values that are listed, for points along a line or for the cells of a grid. */
class ListedValues {
  constructor({ first, step, counts, actions, limits, mean, std, policy, unknown }) {
    Object.assign(this, { first, step, counts, actions, limits });
    this.mean = decoded(mean, Float64Array);
    this.std = std && decoded(std, Float64Array);
    this.policy = decoded(policy, Int32Array);
    this.unknown = unknown && decoded(unknown, Uint8Array);
  }

  places(u) {
    const { first, step, counts } = this;
    return u.map((value, d) =>
      within(Math.round((value - first[d]) / step[d]), 0, counts[d] - 1));
  }

  snapped(u) {
    return this.places(u).map((place, d) => this.first[d] + place * this.step[d]);
  }

  at(u, all = true) {
    const [column, row = 0] = this.places(u);
    const place = row * this.counts[0] + column, { actions } = this;
    const action = this.policy[place];
    const [start, end] = all ? [0, actions] : [action, action + 1];
    const part = (table) =>
      table && Array.from(table.subarray(place * actions + start, place * actions + end));
    const unknown = Boolean(this.unknown && this.unknown[place]);
    return { action, mean: part(this.mean), std: part(this.std), unknown };
  }
}
