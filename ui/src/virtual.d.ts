/** Made by `vite.config.ts`. */
declare module 'virtual:definition-schemas' {
  const schemas: import('./pages/sequences/completions.ts').Schemas;
  export default schemas;
}
