import{a,b}from"./chunk-MQYVLEUP.js";import"./chunk-YRXT5IUA.js";import"./chunk-KKDDH36U.js";import"./chunk-NK6ASBOH.js";import"./chunk-NHKUEUWO.js";export{a as FunctionTable,b as default};
