import org.jetbrains.kotlin.gradle.dsl.JvmTarget

plugins {
    alias(libs.plugins.kotlin.jvm)
    alias(libs.plugins.kotlin.serialization)
}

java {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
}

kotlin {
    compilerOptions { jvmTarget = JvmTarget.JVM_1_8 }
}

dependencies {
    api(libs.kotlin.stdlib)
    api(libs.coroutines.core)
    api(libs.serialization.json)
    api(libs.okhttp)
    api(libs.zxing)
    testImplementation(libs.coroutines.test)
    testImplementation(libs.kotlin.test)
    testImplementation(libs.turbine)
    testImplementation(libs.junit)
}

// What ui's tests have of these.
val tests by configurations.creating { isCanBeResolved = false }
val testsJar by tasks.registering(Jar::class) {
    archiveClassifier = "tests"
    from(sourceSets.test.map { it.output })
}
artifacts.add(tests.name, testsJar)

tasks.test {
    exclude("**/real/**") // with real agents, which need root: agent-test runs them
    systemProperty("fieldmesh.golden", file("../../protocols/wire/golden").path)
    systemProperty("fieldmesh.nmea", file("../../node-agent/gps/testdata").path)
}
