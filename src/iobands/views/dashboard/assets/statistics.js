// Quartiles, and the ratio of two sets of runs with its interval.
"use strict";

(() => {
  const DAY = 86400;
  const CONFIDENCE = 0.95;
  const FEWEST_PAIRS = 6; // their smallest to largest ratio is an interval with a confidence of 1 - 2 / 2**6
  const RESAMPLES = 2000;

  const sorted = (values) => Float64Array.from(values).sort();

  // Quantiles of type 7 of Hyndman and Fan, as everywhere in iobands.
  iobands.quantiles = (values, shares) => {
    const order = sorted(values);
    return shares.map((share) => {
      const place = share * (order.length - 1);
      const low = Math.floor(place);
      return order[low] + (place - low) * ((order[low + 1] ?? order[low]) - order[low]);
    });
  };
  iobands.quartiles = (values) => (values.length ? iobands.quantiles(values, [0.25, 0.5, 0.75]) : []);
  const median = (values) => iobands.quantiles(values, [0.5])[0];

  // The values of pairs of runs: nearest in time, at most a day apart, no run in two pairs.
  iobands.pairs = (one, other) => {
    const candidates = [];
    let after = 0;
    one.times.forEach((time, place) => {
      while (after < other.times.length && other.times[after] < time) after += 1;
      const near = [after - 1, after].filter((each) => each >= 0 && each < other.times.length)
        .map((each) => [Math.abs(other.times[each] - time), place, each])
        .sort(([first], [second]) => first - second)[0];
      if (near && near[0] <= DAY) candidates.push(near);
    });
    const taken = new Set();
    return candidates.sort(([first], [second]) => first - second)
      .filter(([, , each]) => !taken.has(each) && taken.add(each))
      .map(([, place, each]) => [one.values[place], other.values[each]])
      .filter(([first, second]) => first > 0 && second > 0);
  };

  // The median ratio of pairs, with the interval of the sign test.
  function pairedRatio(pairs) {
    const logs = sorted(pairs.map(([one, other]) => Math.log(one / other)));
    let place = -1;
    let term = 2 ** -logs.length;
    let outside = term; // probability that at most `place` + 1 ratios are on one side of the median
    while (place + 1 < Math.floor(logs.length / 2) && 1 - 2 * outside >= CONFIDENCE) {
      place += 1;
      term *= (logs.length - place) / (place + 1);
      outside += term;
    }
    return {
      ratio: Math.exp(median(logs)), low: Math.exp(logs[place]), high: Math.exp(logs[logs.length - 1 - place]),
      how: `median of ${iobands.plural(pairs.length, "pair")} of runs at most a day apart, interval from the sign test`,
    };
  }

  // Random numbers from a fixed seed, so that the same runs give the same interval.
  function generator() {
    let state = 1;
    return (below) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
  }

  // The ratio of two medians, with the percentile interval of the bootstrap (Efron 1979).
  function medianRatio(one, other) {
    const draw = generator();
    const resampled = (values) => median(values.map(() => values[draw(values.length)]));
    const ratios = Array.from({ length: RESAMPLES }, () => resampled(one) / resampled(other));
    const [low, high] = iobands.quantiles(ratios, [0.025, 0.975]);
    return {
      ratio: median(one) / median(other), low, high,
      how: `ratio of the medians of ${one.length} and ${iobands.plural(other.length, "run")}, interval from the bootstrap`,
    };
  }

  // The ratio of two sets of runs with its 95 % interval; null with too few runs.
  iobands.ratio = (one, other) => {
    const pairs = iobands.pairs(one, other);
    if (pairs.length >= FEWEST_PAIRS) return pairedRatio(pairs);
    const values = [one, other].map((set) => set.values.filter((value) => value > 0));
    return Math.min(...values.map((each) => each.length)) >= FEWEST_PAIRS ? medianRatio(...values) : null;
  };
})();
