/** The tables of docs/metrics.md, which are printed from the metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOUSE_METRICS } from '../../../supervisor/metrics/house-metrics.js';
import { holdsSection, printTable } from '../../helpers/doc-page.js';

holdsSection('metrics.md', 'house-metrics', () =>
  printTable(
    ['name', 'type', 'labels', 'meaning'],
    HOUSE_METRICS.map(({ name, type, labels, help }) => [
      `\`${name}\``,
      type,
      labels.length === 0 ? '-' : labels.map((label) => `\`${label}\``).join(', '),
      help,
    ]),
  ),
);

test('names and labels follow the conventions of Prometheus', () => {
  for (const { name, type, labels, help } of HOUSE_METRICS) {
    assert.match(name, /^banana_[a-z_]+[a-z]$/);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.ok(help.endsWith('.'), `the meaning of ${name} is a sentence`);
    for (const label of labels) assert.match(label, /^[a-z]+$/);
  }
});
