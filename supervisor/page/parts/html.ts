/** Markup as tagged templates. The page's own components are put in by `h`, so that the compiler checks their props. */
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
