//! Made-up examples: some groups, and unions of them, the same on every machine.

use std::sync::OnceLock;

use compflow_api::{
    Column, Component, Composer, Flags, ForeignComponent, ForeignComposer, NoParams, Registration, Result,
    Services, Sets, Table,
};

/// A composer that comes with the tests, so that none need be found.
struct Largest;

impl Component for Largest {
    const NAME: &'static str = "largest";
    const SUMMARY: &'static str = "the larger of both";
    const FLAGS: Flags = Flags::HAS_GRADIENTS;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for Largest {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
            *out = left.max(*right);
        }
        Ok(())
    }

    fn vjp(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for at in 0..grad.len() {
            let (to_left, to_right) = if left[at] >= right[at] { (grad[at], 0.0) } else { (0.0, grad[at]) };
            (grad_left[at], grad_right[at]) = (to_left, to_right);
        }
        Ok(())
    }
}

/// An instance of it, as a library would hand it over.
///
/// # Errors
/// None in practice.
pub(crate) fn composer() -> Result<ForeignComposer> {
    // Describing a component allocates for ever, so that is done once.
    static COMPONENT: OnceLock<Result<ForeignComponent>> = OnceLock::new();
    let described = COMPONENT.get_or_init(|| Registration::composer::<Largest>().component());
    let component = described.as_ref().map_err(Clone::clone)?;
    ForeignComposer::try_from(component.create("{}", &Services::none())?)
}

/// Evenly spread numbers in [0, 1), always the same.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f32 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    pub(crate) fn many(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }

    /// Numbers in [-size, size).
    pub(crate) fn signed(&mut self, count: usize, size: f32) -> Vec<f32> {
        (0..count).map(|_| (self.next() * 2.0 - 1.0) * size).collect()
    }
}

/// Examples and their true sets.
pub(crate) struct Examples {
    pub(crate) dim: usize,
    pub(crate) values: Vec<f32>,
    pub(crate) truth: Sets,
}

/// What further columns may hold: nobody says what a component expects of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Contents {
    Floats,
    Integers,
    Texts,
}

impl Contents {
    pub(crate) const ALL: [Self; 3] = [Self::Floats, Self::Integers, Self::Texts];
}

/// Further columns of these names; identifiers are never fractions, and segments of a recording follow one another.
pub(crate) fn columns(names: &[String], contents: Contents, rows: usize) -> Table {
    let column = |name: &str| match contents {
        Contents::Floats if name == "file" => Column::Texts(vec!["recording".to_owned(); rows]),
        Contents::Floats if name == "end" => Column::Floats((1..=rows).map(|row| row as f64 / 4.0).collect()),
        Contents::Floats if name != "id" => Column::Floats((0..rows).map(|row| row as f64 / 4.0).collect()),
        Contents::Texts => Column::Texts((0..rows).map(|row| format!("t{}", row % 7)).collect()),
        Contents::Floats | Contents::Integers => Column::Integers((0..rows as i64).collect()),
    };
    names.iter().map(|name| (name.clone(), column(name))).collect()
}

/// `rows` examples of three groups and of the unions of two of them, in turn.
pub(crate) fn mixture(rows: usize, dim: usize) -> Examples {
    const SETS: [&[u32]; 6] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
    let mut numbers = Numbers(1);
    let centres: Vec<Vec<f32>> = (0..3).map(|_| numbers.many(dim)).collect();
    let mut values = Vec::with_capacity(rows * dim);
    for row in 0..rows {
        let set = SETS[row % SETS.len()];
        values.extend((0..dim).map(|at| {
            let centre = set.iter().map(|member| centres[*member as usize][at]).fold(f32::MIN, f32::max);
            centre + 0.02 * (numbers.next() - 0.5)
        }));
    }
    Examples { dim, values, truth: (0..rows).map(|row| SETS[row % SETS.len()]).collect() }
}

/// The same example again and again.
pub(crate) fn duplicated(rows: usize, dim: usize) -> Examples {
    Examples {
        dim,
        values: [0.25, -0.5].repeat(rows * dim).into_iter().take(rows * dim).collect(),
        ..mixture(rows, dim)
    }
}

/// Examples near the largest numbers there are.
pub(crate) fn huge(rows: usize, dim: usize) -> Examples {
    let mut examples = mixture(rows, dim);
    examples
        .values
        .iter_mut()
        .enumerate()
        .for_each(|(at, value)| *value = (*value + 1.0) * if at % 2 == 0 { 1e37 } else { -1e37 });
    examples
}
