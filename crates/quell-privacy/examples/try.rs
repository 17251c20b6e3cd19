use quell_privacy::{*,units::*,accounting::Pld};
fn main(){
    let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (q,s,t,d)=(a[0],a[1],a[2],a[3]);
    let e=Event::dp_sgd(NoiseMultiplier::new(s).unwrap(),SamplingRate::new(q).unwrap(),t as u64);
    let pld = if a.len()>4 { Pld{relative:a[4],absolute:a[5],..Pld::default()} } else {Pld::default()};
    for _ in 0..5 {
    let t0=std::time::Instant::now();
    let b=pld.epsilon(&e,Neighbors::AddRemove,Delta::new(d).unwrap());
    println!("{b:?} {:?}",t0.elapsed());
    }
}
