/** What a metric is about, beside its name: `new Dimension('Layer', 'conv1')`. */
export class Dimension {
  readonly name: string;
  readonly value: string;

  constructor(name: string, value: unknown) {
    this.name = String(name);
    this.value = String(value);
  }
}
