/** Panels, tables, and lists of names with their values. */
import type { VNode } from 'preact';
import { html } from './html.js';

/** A part of a view. `id` names it; `beside`: what stands in the line of its title. */
export function panel(id: string, title: string, className: string, beside: unknown, body: unknown): VNode {
  return html`<section class=${`panel ${className}`} aria-labelledby=${`${id}-title`}>
    <div class="panel-head">
      <h2 id=${`${id}-title`}>${title}</h2>
      ${beside}
    </div>
    ${body}
  </section>`;
}

export function tableHead(columns: readonly string[]): VNode {
  return html`<thead>
    <tr>
      ${columns.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}
    </tr>
  </thead>`;
}

/** The cells of one row; on a narrow screen each names its column. */
export function tableCells(columns: readonly string[], cells: readonly unknown[]): VNode[] {
  return cells.map((cell, i) => html`<td key=${columns[i]} data-label=${columns[i]}>${cell}</td>`);
}

export type Fact = readonly [name: string, value: unknown, className?: string];

/** Facts one below the other. */
export function factList(facts: readonly Fact[]): VNode {
  return html`<dl class="facts">
    ${facts.map(([name, value, className]) => [html`<dt key=${name}>${name}</dt>`, html`<dd key=${`${name}=`} class=${className}>${value}</dd>`])}
  </dl>`;
}

/** Figures side by side. */
export function figureList(figures: readonly Fact[], className = ''): VNode {
  return html`<dl class=${`figures ${className}`}>
    ${figures.map(
      ([name, value, ownClass]) =>
        html`<div key=${name} class=${ownClass}>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}
