/**
 * Markup as tagged templates, panels, tables, lists of names with their values, and states. The page's own components are put in
 * by `h`, so that the compiler checks their props.
 */
import htm from 'htm';
import { createElement, type FunctionComponent } from 'preact';

/** An element of the page. It names no type of preact's, whose declarations need a browser: tests of the page run in Node. */
export type VNode = object;

/** `key`: tells components of a list apart. */
export function h<Props extends object>(
  component: (props: Props) => VNode | null,
  props: Props & { readonly key?: string | number },
): VNode {
  return createElement(component as FunctionComponent<Props>, props);
}

/** The types of htm know its CommonJS build only. */
type Htm = { bind(create: unknown): (strings: TemplateStringsArray, ...values: unknown[]) => VNode };

export const html = (htm as unknown as Htm).bind(createElement);

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

/** A fact without a value, which is an empty text, is left out. */
export type Fact = readonly [name: string, value: unknown, className?: string];

/** Facts one below the other (`facts`), or side by side (`figures`). */
export function factList(className: string, facts: readonly Fact[]): VNode {
  return html`<dl class=${className}>
    ${facts
      .filter(([, value]) => value !== '')
      .map(
        ([name, value, ownClass]) =>
          html`<div key=${name} class=${ownClass}>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
  </dl>`;
}

/** Kinds of states; each has a sign and a colour of its own, so that none depends on its colour. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'off';

const SIGNS: Readonly<Record<Tone, string>> = { good: '●', busy: '◐', warn: '◆', bad: '▲', off: '○' };

/** A state in a word, with its sign. */
export function stateMark(tone: Tone, text: string): VNode {
  return html`<span class=${`state ${tone}`}
    ><span class="sign" aria-hidden="true">${SIGNS[tone]}</span>${text}</span
  >`;
}
