// A small generator of numbers that look random and are the same everywhere.

export class Random {
  constructor(private state: number) {}

  /** Uniform in [0, 1): mulberry32. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** Exponential with mean 1: what softmax weights of noise look like. */
  exponential(): number {
    return -Math.log(1 - this.next());
  }
}
