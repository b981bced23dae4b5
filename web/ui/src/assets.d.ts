// SPDX-License-Identifier: MIT
declare module "*.css";
/* Is this the build of saved pages? See build.mjs. */
declare const SAVED: boolean;
