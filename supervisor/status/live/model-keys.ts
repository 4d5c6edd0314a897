/** Numbers the models of a server: one that is registered again under the same name is another model. */
export class ModelKeys {
  readonly #keys = new WeakMap<object, number>();
  #last = 0;

  of(model: object): number {
    const known = this.#keys.get(model);
    if (known !== undefined) return known;
    this.#last += 1;
    this.#keys.set(model, this.#last);
    return this.#last;
  }
}
