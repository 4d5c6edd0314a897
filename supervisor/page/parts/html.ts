/** Markup as tagged templates. The page's own components are put in by `h`, so that the compiler checks their props. */
import htm from 'htm';
import { createElement, type ComponentType, type VNode } from 'preact';

/** `key`: tells components of a list apart. */
export function h<Props extends object>(
  component: (props: Props) => VNode | null,
  props: Props & { readonly key?: string | number },
): VNode {
  return createElement(component as ComponentType<Props>, props) as VNode;
}

export const html = (htm as unknown as Htm).bind(createElement);

/** The types of htm know its CommonJS build only. */
interface Htm {
  bind(create: typeof createElement): (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
}
