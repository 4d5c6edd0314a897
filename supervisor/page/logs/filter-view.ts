import type { VNode } from 'preact';
import { valuesOf, NO_FILTER, type LineFilter, type NumberedLine } from '../live/log-lines.js';
import { Choice } from '../parts/choice.js';
import { html, h } from '../parts/html.js';

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
    ${field('Words', 'Filter: words, !word', filter.text, (text) => change({ text }))}
    ${h(Choice, {
      label: 'Level',
      value: filter.level,
      options: LEVEL_TEXTS,
      choose: (level: string) => change({ level }),
    })}
    ${column('Model', 'model', filter, lines, change)} ${column('Worker', 'worker', filter, lines, change)}
    ${field('Request id', 'Request id', filter.request, (request) => change({ request: request.trim() }))}
    ${isSet && html`<button type="button" class="small quiet" onClick=${() => setFilter(NO_FILTER)}>All lines</button>`}
  </div>`;
}

function field(label: string, hint: string, value: string, set: (value: string) => void): VNode {
  return html`<input
    type="search"
    aria-label=${label}
    placeholder=${hint}
    value=${value}
    onInput=${(event: Event) => set((event.target as HTMLInputElement).value)}
  />`;
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
  return h(Choice, {
    label,
    value: chosen,
    options: [['', 'all'] as const, ...values.map((value) => [value, value] as const)],
    choose: (value: string) => change({ [name]: value }),
  });
}
