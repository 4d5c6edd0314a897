/** A dimension of a metric, a name and a value: `new Dimension('Layer', 'conv1')`. */
export class Dimension {
  readonly name: string;
  readonly value: string;

  constructor(name: string, value: unknown) {
    this.name = String(name);
    this.value = String(value);
  }
}
