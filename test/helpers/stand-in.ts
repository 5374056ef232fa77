/** For what a hook makes later. */
export const standIn = <T extends object>(made: () => T | undefined): T =>
  new Proxy({} as T, {
    get(_, field) {
      const it = made() as T;
      const value: unknown = Reflect.get(it, field);
      return typeof value === 'function' ? value.bind(it) : value;
    },
  });
