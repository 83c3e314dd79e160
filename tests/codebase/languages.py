"""One small source of each parsed language, as people write them."""

PYTHON = '''"""Sessions."""
import os.path
from collections import abc as kinds
from .store import Store, open_store
from . import helpers
from app.errors import *
from importlib import (
    resources as r,  # read, not run
    util,
)

LIMIT = 10


class Session:
    """A session."""

    size: int = 0

    def open(self, name: str) -> "Session":
        from app import late
        inner = lambda: 1
        return self

    class Key:
        def text(self): ...


async def close_all(sessions):
    def one(s): ...
    for s in sessions:
        await s


@decorated
def checked(): pass
'''
JAVASCRIPT = """
'use strict';
const path = require('node:path');
import Router, { route } from './router';
export * from "./types.js";
export const LIMIT = 3;
export class App extends Base {
  constructor() { super(); }
  async listen(port) { const lazy = await import('./lazy'); }
}
function start(app) { return app; }
export default function main() {}
const handler = (req, res) => res.end();
app.use = function use(fn) { return this; };
module.exports.stop = () => {};
"""
TYPESCRIPT = """
import type { User } from "../model/user";
import fs = require("fs");
export interface Store<T> { get(id: string): T; }
export type Id = string | number;
export enum Colour { Red, Green }
export abstract class Base { abstract name(): string; open(): void {} }
namespace Inner { export const x = 1; }
export function parse(text: string): Id { return text; }
declare function outside(a: number): void;
"""
TSX = """
import React from 'react';
import { Button } from './Button';
export const Card = ({ title }: { title: string }) => <Button>{title}</Button>;
export default class Page extends React.Component { render() { return <Card title="a" />; } }
"""
GO = """
package server

import (
	"fmt"
	mux "example.com/app/router"
)

const Limit = 3

var ErrClosed = fmt.Errorf("closed")

type Server struct{ addr string }

type Handler interface{ Serve() }

type Names []string

func New(addr string) *Server { return &Server{addr} }

func (s *Server) Listen(port int) error { return nil }
"""
RUST = """
use crate::store::{Store, disk::{self, Page}};
use super::errors::Error as E;
use std::io;
mod parser;
pub mod inline { pub fn deep() {} }

pub const LIMIT: usize = 3;
pub struct Session<'a> { name: &'a str }
pub enum Kind { A, B }
pub trait Open { fn open(&self); }
pub type Id = u64;
impl<'a> Session<'a> {
    pub fn close(&self) -> Result<(), E> { Ok(()) }
}
macro_rules! twice { ($e:expr) => { $e; $e } }
fn main() {}
"""
JAVA = """
package com.example.app;

import java.util.List;
import com.example.store.Store;
import com.example.model.*;
import static com.example.Checks.notNull;

public class Session extends Base implements AutoCloseable {
    private static final int LIMIT = 3;
    public Session(Store store) {}
    @Override public void close() {}
    enum State { OPEN, CLOSED }
    interface Listener { void onClose(); }
}
record Point(int x, int y) {}
@interface Marked {}
"""
