import type { VNode } from 'preact';
import { valuesOf, NO_FILTER, type LineFilter, type NumberedLine } from '../live/log-lines.js';
import { choice, quietButton, searchField } from '../parts/controls.js';
import { html } from '../parts/html.js';

interface FilterProps {
  readonly filter: LineFilter;
  readonly lines: readonly NumberedLine[];
  readonly setFilter: (filter: LineFilter) => void;
}

const LEVEL_TEXTS: readonly (readonly [string, string])[] = [
  ['', 'all'],
  ['errors', 'errors'],
  ['warnings', 'warnings and errors'],
  ['log', 'without prints'],
  ['prints', 'prints (stdout, stderr)'],
  ['stderr', 'prints to stderr'],
];

/** Chooses the lines that are shown. What leaves no choice is not there. */
export function FilterView({ filter, lines, setFilter }: FilterProps): VNode {
  const change = (part: Partial<LineFilter>): void => setFilter({ ...filter, ...part });
  const isSet = Object.values(filter).some((value) => value !== '');
  return html`<div class="row line-filter">
    ${searchField('Words', 'Filter: words, !word', filter.text, (text) => change({ text }))}
    ${choice('Level', filter.level, LEVEL_TEXTS, (level) => change({ level }))}
    ${column('Model', 'model', filter, lines, change)} ${column('Worker', 'worker', filter, lines, change)}
    ${searchField('Request id', 'Request id', filter.request, (request) => change({ request: request.trim() }))}
    ${isSet && quietButton('All lines', () => setFilter(NO_FILTER))}
  </div>`;
}

function column(
  label: string,
  name: 'model' | 'worker',
  filter: LineFilter,
  lines: readonly NumberedLine[],
  change: (part: Partial<LineFilter>) => void,
): VNode | null {
  const chosen = filter[name];
  const known = valuesOf(lines, name);
  const values = chosen === '' || known.includes(chosen) ? known : [...known, chosen];
  if (values.length < 2 && chosen === '') return null;
  const options = [['', 'all'] as const, ...values.map((value) => [value, value] as const)];
  return choice(label, chosen, options, (value) => change({ [name]: value }));
}
