// For Android Studio, to open this folder by. Builds and tests are Maven's (README.md), and no Gradle has read these
// files yet. gradle/libs.versions.toml has the versions.
pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
    }
}

rootProject.name = "fieldmesh-app"
include("core", "device", "ui")
